"""What a loss sees: grades, offsets and weights of contiguous lists of rows."""

from typing import NamedTuple

from numpy.typing import ArrayLike


class Lists(NamedTuple):
    """Contiguous lists of rows; rows ``offsets[q]:offsets[q + 1]`` are list ``q``.

    ``grade`` (rows,): higher is better, equal grades tie; only the order counts unless a loss says otherwise.
    ``offsets`` (lists + 1,): starts at 0 and ends at the number of rows.
    ``weight`` (lists,): how often each list counts; ``None`` stands for once.
    """

    grade: ArrayLike
    offsets: ArrayLike
    weight: ArrayLike | None = None
