"""A model's weights with other layers: more that add nothing, or fewer."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

Tensor = TypeVar("Tensor")

_LAYER = re.compile(r"model\.layers\.(\d+)\.(.*)")
# What the two halves of a layer write into the residual stream: with both zero the layer adds nothing.
_OUTPUTS = ("self_attn.o_proj.", "mlp.down_proj.")


def deepened(
    weights: Mapping[str, Tensor], times: int, zeros: Callable[[Tensor], Tensor]
) -> dict[str, Tensor]:
    """Return the weights with each layer followed by ``times`` - 1 copies that add nothing.

    Layer i comes to stand at i * ``times``. The copies compute all that a layer computes, so that a step
    costs as many layers, but write zeros: the logits stay the same to the bit.
    """
    found: dict[str, Tensor] = {}
    for name, weight in weights.items():
        layer = _LAYER.fullmatch(name)
        if layer is None:
            found[name] = weight
            continue
        number, part = int(layer[1]), layer[2]
        for copy in range(times):
            silent = copy > 0 and part.startswith(_OUTPUTS)
            found[f"model.layers.{number * times + copy}.{part}"] = zeros(weight) if silent else weight
    return found


def picked(weights: Mapping[str, Tensor], layers: Sequence[int]) -> dict[str, Tensor]:
    """Return the weights with these layers alone, in this order, and all that is no layer."""
    place = {number: position for position, number in enumerate(layers)}
    found: dict[str, Tensor] = {}
    for name, weight in weights.items():
        layer = _LAYER.fullmatch(name)
        if layer is None:
            found[name] = weight
        elif int(layer[1]) in place:
            found[f"model.layers.{place[int(layer[1])]}.{layer[2]}"] = weight
    return found
