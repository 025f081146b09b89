"""docs/troubleshooting.md: every reason code, sign and warning with what to do, made from the catalogue."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from pivotbench.client.warnings import TEXTS, RunWarning
from pivotbench.diagnosis.reasons import ReasonCode, reason_codes
from pivotbench.diagnosis.signatures import Signature, catalogue
from pivotbench.files import write_text

DOCUMENT = Path(__file__).parents[3] / "docs" / "troubleshooting.md"

# Filled in from the line that matched, or from the run.
_FIGURE = re.compile(r"\{[^}]*\}")

_HEAD = """\
# Troubleshooting

Written by `make generated` from [reasons.yaml](../scripts/pivotbench/diagnosis/reasons.yaml) and
[signatures.yaml](../scripts/pivotbench/engines/signatures.yaml).

A failed stage has a `reason` with a `code`; look it up here. **Deterministic** failures come again, and one
of them puts a configuration out. **Transient** ones may pass: the next invocation tries them again, and two
in different rounds put a configuration out. `--config retry=all` tries every failure again. The evidence
beside the reason begins with the line that tells the cause; the whole log is in `logs/` of the cell.
"""

_SIGNS = """\
## Signs in an answer

A reason `garbage` or `garbage_under_load` names in parentheses what the detectors saw. Alone, only those put
a configuration out that are garbage by themselves; the others count where the reference's answer to the same
prompt has none of them, since a weak model loops too. Thresholds, and what they find and miss:
[benchmarks/detectors](../benchmarks/detectors/README.md).

| sign | what was seen |
|---|---|"""


def document() -> str:
    """Return the document."""
    by_code: dict[str, list[Signature]] = {}
    for signature in catalogue().signatures:
        by_code.setdefault(signature.code, []).append(signature)
    reasons = reason_codes().reasons
    told = [_code(c, known, by_code.get(c, ())) for c, known in reasons.items() if known.seen == "log"]
    judged = [_code(c, known, ()) for c, known in reasons.items() if known.seen != "log"]
    warned = [_warning(warning) for warning in RunWarning]
    return "\n".join(
        [
            _HEAD,
            "## What the server's log tells\n",
            *told,
            "## What a stage or the decision finds\n",
            *judged,
            _SIGNS,
            *(f"| `{name}` | {meaning} |" for name, meaning in reason_codes().signs.items()),
            "",
            "## Warnings of a run\n",
            "A run with a warning is kept and marked.\n",
            "| warning | what it says | what to do |\n|---|---|---|",
            *warned,
            "",
        ]
    )


def _code(code: str, known: ReasonCode, signatures: Iterable[Signature]) -> str:
    where = "" if known.seen == "log" else f", seen in {known.seen}"
    lines = [f"### {code}\n", f"{known.means} *{known.kind.capitalize()}{where}.*\n", f"{known.remedy}\n"]
    rows = [_signature(signature) for signature in signatures]
    if rows:
        lines += ["| what the log shows | what to do |\n|---|---|", *rows, ""]
    return "\n".join(lines)


def _signature(signature: Signature) -> str:
    says = _FIGURE.sub("…", signature.says)
    links = ", ".join(f"[{_short(link)}]({link})" for link in signature.links)
    only = f" ({signature.engine})" if signature.engine else ""
    return f"| {says}{only} | {signature.remedy}{' ' + links if links else ''} |"


def _short(link: str) -> str:
    _, _, _, _, name, _, number = link.split("/")
    return f"{name}#{number}"


def _warning(warning: RunWarning) -> str:
    return f"| `{warning}` | {_FIGURE.sub('…', TEXTS[warning])} | {reason_codes().warnings[warning]} |"


if __name__ == "__main__":
    write_text(DOCUMENT, document())
