"""A study file as plain data, with the line of every key.

YAML is read by node rather than by pyyaml's constructors: only ``true`` and ``false`` are booleans, so
that ``flash-attn: on`` stays the text a server is given, and every key is text.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from pivotbench.errors import UserError
from pivotbench.json_lines import HALF_CHARACTER, is_unicode
from pivotbench.redaction import holds_issued_key
from pivotbench.wording import KeyPath, key_text, quoted

MAX_BYTES = 4 << 20
# An alias is built anew wherever it is used, so nested aliases multiply: this bounds what they can grow to.
MAX_NODES = 100_000
MAX_DEPTH = 20
EVENTS_PER_NODE = 3  # a key, and the begin and end of what it holds
TOO_MANY = f"a study has at most {MAX_NODES:,} values, those that aliases repeat included"

_NULL = re.compile(r"|~|null|Null|NULL")
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_REAL = re.compile(r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))([eE][-+]?[0-9]+)?")
_MAX_DIGITS = 18
_PLAIN_TAGS = {f"tag:yaml.org,2002:{kind}" for kind in ("str", "int", "float", "bool", "null", "timestamp")}
_PLAIN_TAGS |= {"tag:yaml.org,2002:value", "tag:yaml.org,2002:merge"}
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass
class Source:
    """Where a study came from: its file, its plain data, and the 1-based line of each key path."""

    file: Path
    data: dict[str, Any]
    lines: dict[KeyPath, int] = field(default_factory=dict)

    def line(self, path: KeyPath) -> int:
        """Return the line of ``path``, or of the nearest parent that is in the file."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    def error(self, path: KeyPath, message: str) -> UserError:
        """Return the error a user reads: ``file:line: key: message``."""
        where = f"{self.file}:{self.line(path)}: "
        return UserError(f"{where}{key_text(path)}: {message}" if path else f"{where}{message}")


def read_source(file: Path) -> Source:
    """Read a study file.

    Raises UserError for a file that is missing, too large, empty, not UTF-8, not YAML or not a mapping,
    and for keys given twice, keys without a value, merge keys, tags, and aliases that grow beyond reason.
    """
    root = _compose(file, _read_text(file))
    if root is None:
        raise UserError(f"{file}:1: the file is empty; a study needs at least name, engine and model")
    if not isinstance(root, yaml.MappingNode):
        raise UserError(
            f"{file}:{root.start_mark.line + 1}: a study is a mapping of keys, such as 'name: demo'"
        )
    builder = _Builder(Source(file, {}))
    builder.source.data = builder.build(root, ())
    return builder.source


def _read_text(file: Path) -> str:
    try:
        if file.exists() and not file.is_file() and not file.is_dir():
            raise UserError(f"{file}: cannot be read: not a file but a device or pipe")
        size = file.stat().st_size
        data = file.read_bytes() if size <= MAX_BYTES else b""
    except FileNotFoundError:
        raise UserError(f"{file}: no such study file; choose one with --config study=PATH") from None
    except OSError as error:
        raise UserError(f"{file}: cannot be read: {error.strerror}") from None
    if size > MAX_BYTES:
        raise UserError(
            f"{file}: {size >> 20} MiB is too large for a study; the limit is {MAX_BYTES >> 20} MiB"
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UserError(f"{file}:{line}: not UTF-8 text; save the file as UTF-8") from None


def _compose(file: Path, text: str) -> yaml.Node | None:
    try:
        # Read first and built afterwards, so that what is too much does not fill the memory.
        for number, event in enumerate(yaml.parse(text, Loader=_LOADER)):
            if number > EVENTS_PER_NODE * MAX_NODES:
                line = event.start_mark.line + 1 if event.start_mark else 1
                raise UserError(f"{file}:{line}: {TOO_MANY}")
        root: yaml.Node | None = yaml.compose(text, Loader=_LOADER)
        return root
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        lines = text.splitlines()
        source = lines[line - 1] if line <= len(lines) else ""
        problem = error.problem or "cannot be parsed"
        if "\t" in source[: len(source) - len(source.lstrip())]:
            problem = "the line is indented by a tab; use spaces"
        elif isinstance(error, yaml.composer.ComposerError) and "document" in (error.context or ""):
            problem = "a study is one document; remove what follows '---'"
        raise UserError(f"{file}:{line}: not valid YAML: {problem}") from None
    except yaml.YAMLError as error:
        raise UserError(f"{file}:1: not valid YAML: {str(error).splitlines()[0]}") from None
    except RecursionError:
        raise UserError(f"{file}:1: nested too deeply for a study") from None


class _Builder:
    """Turns nodes into data while it counts them and notes their lines."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.nodes = 0

    def build(self, node: yaml.Node, path: KeyPath) -> Any:
        self.source.lines.setdefault(path, node.start_mark.line + 1)
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise self.source.error(path, TOO_MANY)
        if len(path) > MAX_DEPTH:
            raise self.source.error(path[:2], "nested too deeply for a study (does an alias hold itself?)")
        if isinstance(node, yaml.MappingNode):
            self._refuse_tag(node, path, "tag:yaml.org,2002:map")
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            self._refuse_tag(node, path, "tag:yaml.org,2002:seq")
            return [self.build(item, (*path, index)) for index, item in enumerate(node.value)]
        assert isinstance(node, yaml.ScalarNode)
        return self._scalar(node, path)

    def _mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, Any]:
        data: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                self.source.lines[(*path, "?")] = line
                raise self.source.error((*path, "?"), "a key must be plain text")
            key = key_node.value
            here = (*path, key)
            if key == "<<" and not key_node.style:
                self.source.lines[here] = line
                raise self.source.error(here, "merge keys are not supported; write the keys out")
            if key in data:
                first = self.source.line(here)
                self.source.lines[here] = line
                raise self.source.error(here, f"given twice, first on line {first}; keep one")
            self.source.lines[here] = line
            data[key] = self.build(value_node, here)
        return data

    def _scalar(self, node: yaml.ScalarNode, path: KeyPath) -> str | int | float | bool:
        if node.tag not in _PLAIN_TAGS:
            self._refuse_tag(node, path, "tag:yaml.org,2002:str")
        text: str = node.value
        if not is_unicode(text):
            raise self.source.error(path, HALF_CHARACTER)
        if holds_issued_key(text):
            raise self.source.error(
                path, "looks like a key or token; keep it in your own environment, named under secrets"
            )
        if node.style:
            return text
        if _NULL.fullmatch(text):
            raise self.source.error(
                path, "has no value; write one ({} for an empty mapping) or delete the line"
            )
        if text in ("true", "false"):
            return text == "true"
        if _INTEGER.fullmatch(text) and len(text) <= _MAX_DIGITS:
            return int(text)
        if _REAL.fullmatch(text) and math.isfinite(float(text)):
            return float(text)
        return text

    def _refuse_tag(self, node: yaml.Node, path: KeyPath, expected: str) -> None:
        if node.tag != expected:
            tag = node.tag.replace("tag:yaml.org,2002:", "!!")
            raise self.source.error(path, f"the tag {quoted(tag)} is not supported; write plain YAML")
