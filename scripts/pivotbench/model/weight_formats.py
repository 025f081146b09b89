"""How wide a model's numbers are: weights as stored or quantised on loading, and cached values."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

Config = Mapping[str, Any]

WIDTHS = {"float32": 4.0, "float": 4.0, "bfloat16": 2.0, "float16": 2.0, "half": 2.0}
_NVFP4_BYTES = 0.5 + 1 / 16  # four bits, and one 8-bit scale for 16 of them
_MXFP4_BYTES = 0.5 + 1 / 32


class UnknownShape(ValueError):
    """The model's size cannot be told; the message says why, as half a sentence."""


@dataclass(frozen=True)
class Scheme:
    """How weights are quantised: bytes a weight with its scales, and which modules are left as they are."""

    name: str
    bytes_each: float
    left_out: Sequence[str] = ()


def dtype_of(text: Config, config: Config, asked: str | None) -> str:
    """Return the weights' type; engines load single precision in half, unless asked otherwise."""
    if asked and asked != "auto":
        name = asked
    else:
        stored = next(
            (c[key] for c in (text, config) for key in ("dtype", "torch_dtype") if c.get(key)), "float32"
        )
        name = "float16" if stored == "float32" else str(stored)
    if name not in WIDTHS:
        raise UnknownShape(f"the width of {name} is not known")
    return name


def cache_width(asked: str | None, dtype: str) -> float:
    """Return the bytes of a cached number; ``dtype``: the weights' type, which it follows unless asked."""
    if not asked or asked == "auto":
        return WIDTHS[dtype]
    if asked.startswith(("fp8", "float8")):
        return 1.0
    if asked.startswith(("fp4", "float4")):
        return _NVFP4_BYTES
    if asked in WIDTHS or asked == "bf16":
        return WIDTHS.get(asked, 2.0)
    raise UnknownShape(f"the width of a cache in {asked} is not known")


def scheme_of(stored: Config | None, asked: str | None) -> Scheme | None:
    """Return how weights are quantised: as the checkpoint says, else as asked for on loading; None: not."""
    if stored:
        return _stored_scheme(stored)
    if not asked:
        return None
    # Quantised while loading: linear layers alone, scales are negligible.
    if asked in ("fp8", "w8a8_fp8", "w8a8_int8"):
        return Scheme(asked, 1.0)
    if asked == "mxfp8":
        return Scheme(asked, 1.0 + 1 / 32)
    raise UnknownShape(f"the width of weights quantised to {asked} on loading is not known")


def _stored_scheme(stored: Config) -> Scheme:
    method = str(stored.get("quant_method") or "").lower()
    left_out = [
        str(pattern)
        for key in ("ignore", "exclude_modules", "modules_to_not_convert", "ignored_layers")
        for pattern in stored.get(key) or ()
    ]
    if method.startswith("modelopt"):
        algorithm = str(stored.get("quant_algo") or "").upper()
        widths = {"NVFP4": _NVFP4_BYTES, "FP8": 1.0}
        if algorithm in widths:
            return Scheme(algorithm.lower(), widths[algorithm], left_out)
        raise UnknownShape(f"the width of weights in modelopt's {algorithm or 'format'} is not known")
    if method == "fp8":
        block = stored.get("weight_block_size")
        scale = 4 / math.prod(block) if block else 0.0
        return Scheme("fp8", 1.0 + scale, left_out)
    if method == "mxfp4":
        return Scheme("mxfp4", _MXFP4_BYTES, left_out)
    if method in ("awq", "gptq"):
        bits, group = int(stored["bits"]), int(stored["group_size"])
        scales = (2 + bits / 8) / group if group > 0 else 0.0  # half-precision scale and packed zero point
        return Scheme(f"{method} int{bits}", bits / 8 + scales, left_out)
    if method == "compressed-tensors":
        weights = [group.get("weights") or {} for group in (stored.get("config_groups") or {}).values()]
        kinds = {(w.get("type"), w.get("num_bits"), w.get("group_size")) for w in weights}
        if len(kinds) == 1:
            kind, width, size = kinds.pop()
            if (kind, width, size) == ("float", 4, 16):
                return Scheme("nvfp4", _NVFP4_BYTES, left_out)
            if width in (4, 8):
                name = f"{'fp' if kind == 'float' else 'int'}{width}"
                return Scheme(name, width / 8 + (2 / size if size and size > 0 else 0.0), left_out)
    raise UnknownShape(f"the width of weights quantised by {method or 'an unnamed method'} is not known")


def module_bytes(name: str, parameters: int, quantised: bool, dtype: str, scheme: Scheme | None) -> float:
    """Return the bytes of a module's weights; ``quantised``: whether its kind ever is."""
    kept = scheme is None or not quantised or _left_out(name, scheme.left_out)
    return parameters * (WIDTHS[dtype] if kept or scheme is None else scheme.bytes_each)


def _left_out(name: str, patterns: Sequence[str]) -> bool:
    """Whether a module is named: as it is, as a part of its path, by a glob, or by ``re:`` an expression."""
    for pattern in patterns:
        if pattern.startswith("re:"):
            if re.match(pattern[3:], f"model.{name}"):
                return True
            continue
        bare = re.sub(r"^(model\.|language_model\.)+", "", pattern)
        if fnmatchcase(name, bare) or fnmatchcase(name, f"{bare}.*") or fnmatchcase(f"model.{name}", pattern):
            return True
        if "*" not in bare and f".{bare}." in f".{name}.":
            return True
    return False
