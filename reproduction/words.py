"""How numbers and lists are written in a finding."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

import numpy as np

#: What stands where there is nothing to show.
NOTHING = "nothing measured"


RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def typeset(text: str) -> str:
    """A text with the signs of print: minus signs, powers of ten, and a cross between the sides of a table."""
    text = re.sub(r"(?<![\w.)])-(?=[\d.])", "−", text)
    text = re.sub(r"(?<![\w.])(\d+(?:\.\d+)?)e([+-]\d+)", _power_of_ten, text)
    return re.sub(r"(?<=\d) x (?=\d)", " × ", text)


def _power_of_ten(found: re.Match[str]) -> str:
    power = f"10{str(int(found[2])).translate(RAISED)}"
    return power if found[1] == "1" else f"{found[1]}·{power}"


def number(x: float, digits: int = 2) -> str:
    """A number for a sentence: fixed digits near one, few significant ones elsewhere."""
    if not math.isfinite(x):
        return NOTHING
    if x == 0 or 10.0**-digits <= abs(x) < 1000:
        return f"{x:.{digits}f}"
    return f"{x:.2g}" if abs(x) < 1 else f"{x:,.0f}"


def span(values: Iterable[float], unit: str = "", digits: int = 2) -> str:
    """The range of some numbers."""
    finite = [v for v in values if math.isfinite(v)]
    if not finite:
        return NOTHING
    low, high = number(min(finite), digits), number(max(finite), digits)
    return f"{low}{unit}" if low == high else f"{low} to {high}{unit}"


def spread(values: Sequence[float]) -> str:
    """Mean and standard deviation over seeds."""
    finite = np.array([v for v in values if math.isfinite(v)])
    if not len(finite):
        return NOTHING
    return f"{finite.mean():.2f}" + (f" ± {finite.std(ddof=1):.2f}" if len(finite) > 1 else "")


def listed(items: Iterable[str]) -> str:
    """Items in a sentence."""
    words = list(items)
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else "none"


def ball_name(p: float, family: str = "l") -> str:
    """How a ball is called: l₂, l₁.₁, l∞, Schatten-1.5."""
    label = "∞" if p == math.inf else f"{p:g}"
    return (
        f"Schatten-{label}"
        if family == "Schatten"
        else "l" + label.translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉"))
    )
