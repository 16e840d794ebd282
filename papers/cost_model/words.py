"""Durations, sizes and numbers of rows in words."""

from __future__ import annotations

import math


def duration(seconds: float) -> str:
    """Seconds in a unit that suits them.

    Examples
    --------
    >>> duration(0.05), duration(90), duration(7200), duration(864000)
    ('50 ms', '1.5 min', '2.0 h', '10 days')
    """
    if seconds >= 2 * 86400:
        return f"{seconds / 86400:,.0f} days"
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s" if seconds >= 1 else f"{1e3 * seconds:.3g} ms"


def amount(size: float) -> str:
    """Bytes in a unit that suits them.

    Examples
    --------
    >>> amount(5000), amount(2.5e6), amount(64e9)
    ('5 kB', '2.5 MB', '64 GB')
    """
    for unit, scale in (("GB", 1e9), ("MB", 1e6)):
        if size >= scale:
            return f"{size / scale:.3g} {unit}"
    return f"{size / 1e3:.3g} kB"


def rows_in_words(n: float) -> str:
    """A number of rows in two digits, large ones as powers of ten.

    Examples
    --------
    >>> rows_in_words(12589.3), rows_in_words(9.1e10), rows_in_words(math.inf)
    ('13,000', '9.1 · 10^10', 'no number')
    """
    if math.isinf(n):
        return "no number"
    if n < 1e6:
        return f"{float(f'{n:.2g}'):,.0f}"
    exponent = math.floor(math.log10(n))
    return f"{n / 10**exponent:.1f} · 10^{exponent}"
