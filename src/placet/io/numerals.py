"""Numbers as people write them in data: plain decimals, finite; never ``1_000``, ``0x10``, ``nan`` or ``inf``."""

import math
import re

_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_WHOLE = re.compile(r"[0-9]{1,18}")


def decimal(text: str) -> float | None:
    """The finite number that ``text`` writes as a plain decimal, else ``None``.

    >>> decimal("-1.5e3"), decimal("1_000"), decimal("nan")
    (-1500.0, None, None)
    """
    if _DECIMAL.fullmatch(text) is None:
        return None
    value = float(text)
    return value if math.isfinite(value) else None


def whole(text: str) -> int | None:
    """The number that ``text`` writes with 1 to 18 digits, else ``None``."""
    return int(text) if _WHOLE.fullmatch(text) else None


def written(value: float) -> str:
    """The shortest decimal that reads back as ``value``: ``3`` for 3.0.

    >>> written(3.0), written(0.1), written(1e300)
    ('3', '0.1', '1e+300')
    """
    if value == int(value) and abs(value) < 1e16 and not (value == 0 and math.copysign(1, value) < 0):
        return str(int(value))
    return repr(float(value))
