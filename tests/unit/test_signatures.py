"""The catalogue of failures and the codes it gives are sound data."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from pivotbench.client.warnings import RunWarning
from pivotbench.detectors import first_token_collapse, inspect
from pivotbench.diagnosis.reasons import reason_codes, remedy_of
from pivotbench.diagnosis.signatures import Catalogue, Signature, catalogue
from pivotbench.diagnosis.troubleshooting import DOCUMENT, document
from pivotbench.results import Reason

PACKAGE = Path(__file__).parents[2] / "scripts" / "pivotbench"

SETTINGS = settings(
    max_examples=25, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)

PATTERNS = [
    *[(signature.id, signature.pattern) for signature in catalogue().signatures],
    *[(f"{s.id} also", s.also) for s in catalogue().signatures if s.also is not None],
    *[(mark.phase, mark.pattern) for mark in catalogue().phases],
    ("ready", catalogue().ready),
    ("stopped", catalogue().stopped),
]


@pytest.mark.parametrize("pattern", [p for _, p in PATTERNS], ids=[name for name, _ in PATTERNS])
def test_whatever_a_pattern_matches_has_a_word_that_makes_a_line_suspicious(pattern: re.Pattern[str]) -> None:
    @SETTINGS
    @given(st.from_regex(pattern, fullmatch=True))
    def holds(text: str) -> None:
        lowered = text.lower()
        assert any(word in lowered for word in catalogue().words), text

    holds()


def test_every_failure_is_discussed_somewhere_or_says_it_all_itself() -> None:
    plain = {"hub-unreachable", "nvcc-missing", "llamacpp-oom", "flags-refused", "model-gated", "no-gpu"}
    assert {s.id for s in catalogue().signatures if not s.links} == plain


def test_a_reason_is_of_the_kind_that_its_code_is_in_the_catalogue() -> None:
    for code, known in reason_codes().reasons.items():
        assert Reason.of(code, "m").kind == known.kind
    assert Reason.of("timeout", "m").kind == "transient"
    assert Reason.of("of_a_later_version", "m").kind == "deterministic"


def test_every_code_that_the_package_gives_has_its_words() -> None:
    given_codes = {code for path in PACKAGE.rglob("*.py") for code in _codes(path)}
    assert {"launch_timeout", "leaked", "requests_failed", "record_missing", "garbage"} <= given_codes
    assert given_codes <= reason_codes().reasons.keys()
    assert {str(warning) for warning in RunWarning} == reason_codes().warnings.keys()


def test_every_sign_that_a_detector_gives_has_its_words() -> None:
    found = {finding.name for finding in inspect("a text", [1, 2], [-0.1])} | {first_token_collapse([]).name}
    assert found == reason_codes().signs.keys()
    assert all(f"| `{sign}` | " in document() for sign in found)


def test_the_troubleshooting_document_is_current_and_has_a_heading_for_every_code() -> None:
    written = DOCUMENT.read_text(encoding="utf-8")
    assert written == document(), "run make generated"
    assert set(re.findall(r"^### (\w+)$", written, re.MULTILINE)) == reason_codes().reasons.keys()


def test_the_remedy_of_a_signature_goes_before_that_of_its_code() -> None:
    assert remedy_of(Reason("watchdog", "transient", "m", remedy="Do that.")) == "Do that."
    assert remedy_of(Reason("watchdog", "transient", "m")) == reason_codes().reasons["watchdog"].remedy
    assert remedy_of(Reason("of_a_later_version", "transient", "m")) is None


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"code": "strange"}, "no code strange"),
        ({"phase": "dreaming"}, "no mark begins a phase dreaming"),
        ({"says": "It broke in {where}."}, "no group where"),
        ({"remedy": "no full stop"}, "remedy"),
        ({"links": ["http://example.com"]}, "links"),
        ({"pattern": "("}, "pattern"),
        ({"remidy": "Typing error."}, "remidy"),
    ],
)
def test_a_wrong_signature_is_refused(change: dict[str, Any], complaint: str) -> None:
    right = {"id": "x", "code": "unknown", "pattern": "boom", "says": "It broke.", "remedy": "Mend it."}
    whole = catalogue().model_dump()
    assert Catalogue.model_validate({**whole, "signatures": [right]}).signatures == (Signature(**right),)
    with pytest.raises(ValidationError, match=complaint):
        Catalogue.model_validate({**whole, "signatures": [{**right, **change}]})
    with pytest.raises(ValidationError, match="same id"):
        Catalogue.model_validate({**whole, "signatures": [right, right]})


def _codes(path: Path) -> set[str]:
    """The constant codes that a file gives as reasons, of eliminations too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        first = node.args[0] if node.args else next((k.value for k in node.keywords if k.arg == "code"), None)
        if name == "_row" and isinstance(first, ast.Tuple):
            first = first.elts[-1]
        elif not (
            name in ("Reason", "Reason.of", "self._stop", "as_the_log_tells")
            or (name == "self._fail" and path.parent.name == "lease")
        ):
            continue
        if isinstance(first, ast.Constant) and isinstance(first.value, str):
            found.add(first.value)
    return found
