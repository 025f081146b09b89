"""How figures are written wherever people read them: three significant digits, units, plain words."""

from __future__ import annotations

import math
from collections.abc import Sequence

NO_BREAK = "\u00a0"
MINUS = "\u2212"
# How much larger a ratio is says nothing any more.
MOST_RATIO = 10


def number(value: float, digits: int = 3) -> str:
    """Return ``value`` with ``digits`` significant digits, never in exponent form below 1e7."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else "–"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{decimals}f}".replace("-", MINUS)


def tok_s(value: float) -> str:
    """Return a speed in tokens per second with its unit."""
    return f"{number(value)}{NO_BREAK}tok/s"


def seconds(value: float, digits: int = 3) -> str:
    """Return a duration: milliseconds below 0.1 s, minutes above 2 min, hours above 2 h."""
    if value < 0.1:
        return f"{number(value * 1000, digits)}{NO_BREAK}ms"
    if value < 120:
        return f"{number(value, digits)}{NO_BREAK}s"
    if value < 7200:
        return f"{number(value / 60, digits)}{NO_BREAK}min"
    return f"{number(value / 3600, digits)}{NO_BREAK}h"


def percent(fraction: float, *, signed: bool = False) -> str:
    """Return a fraction as per cent, one decimal below 10; ``signed`` writes + and − out."""
    value = abs(fraction) * 100
    text = f"{value:.0f}" if value >= 9.95 else f"{value:.1f}".removesuffix(".0")
    sign = MINUS if fraction < 0 else "+"
    nothing = text == "0"
    return f"{sign if (signed or fraction < 0) and not nothing else ''}{text}{NO_BREAK}%"


def percent_interval(ratio_ci: Sequence[float]) -> str:
    """Return an interval of ratios as signed per cents, e.g. ``−3 % to +7 %``; beyond tenfold by a word."""
    low, high = (
        f"over +900{NO_BREAK}%" if bound > MOST_RATIO else percent(bound - 1, signed=True)
        for bound in ratio_ci
    )
    return f"{low} to {high}"


def times(ratio: float) -> str:
    """Return a ratio as a factor, e.g. ``1.62×``."""
    return f"{ratio:.2f}×"


def count(quantity: int, noun: str, plural: str | None = None) -> str:
    """Return a quantity with its noun in the right number."""
    return f"{quantity:,}{NO_BREAK}{noun if quantity == 1 else plural or noun + 's'}"


def names(items: Sequence[str], most: int = 3) -> str:
    """Return names as a spoken list; beyond ``most`` the rest is counted."""
    shown = list(items)
    if len(shown) > most:
        shown = [*shown[:most], f"{len(shown) - most} more"]
    return shown[0] if len(shown) == 1 else ", ".join(shown[:-1]) + f" and {shown[-1]}" if shown else "none"
