"""Arrays and lists of rows: read-only columns, integer codes for names, columns of any data frame."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from placet.data.errors import DataError
from placet.output.markup import render

Names = tuple[Hashable, ...]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
WeightKind = Literal["counts", "design"]
"""What weights are: how often a row was seen, or how much of a population it stands for (as a survey designs it)."""

T = TypeVar("T")
NEVER_MISSING = frozenset((str, int))
"""Types whose values are never missing, so that names of them need not be asked one by one."""

MOST_WEIGHT = 1e303
"""Largest sum of weights: sums of a few such sums are floating-point numbers still."""


class Lists(NamedTuple):
    """Contiguous lists of rows; rows ``offsets[q]:offsets[q + 1]`` are list ``q``.

    ``grade`` (rows,): higher is better, equal grades tie; only the order matters unless a loss says otherwise.
    ``offsets`` (lists + 1,): starts at 0 and ends at the number of rows.
    ``weight`` (lists,): how often each list counts; ``None`` means once.

    >>> lists = Lists([2, 0, 1], [0, 2, 3], None)
    >>> lists.grade[lists.offsets[0] : lists.offsets[1]]
    [2, 0]
    """

    grade: ArrayLike
    offsets: ArrayLike
    weight: ArrayLike | None = None


def frozen(values: ArrayLike, dtype: Any) -> NDArray[Any]:
    """A read-only, one-dimensional, contiguous view of ``values``; the caller's array stays writable."""
    plain = values.dtype.kind != "c" if type(values) is np.ndarray else isinstance(values, list)  # these hide nothing
    if not plain:
        refuse_masked_or_complex(values)
    array = np.ascontiguousarray(values, dtype=dtype)
    if array.ndim != 1:
        raise DataError(f"a column must be one-dimensional, not of shape {array.shape}")
    view = array.view()
    view.flags.writeable = False
    return view


def refuse_masked_or_complex(values: Any) -> None:
    """Refuse masked arrays, whose hidden values would count as data, and complex numbers, which have no order."""
    if getattr(getattr(values, "dtype", None), "kind", "") == "c":
        raise DataError("complex numbers have no order (Complex data not supported); give their real parts or sizes")
    if isinstance(values, np.ma.MaskedArray):
        hidden = int(np.ma.getmaskarray(values).sum())
        raise DataError(f"a masked array hides {hidden} of its {values.size} values; fill them or leave them out first")


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only view."""
    view = array.view()
    view.flags.writeable = False
    return view


def set_columns(record: Any, **values: Any) -> None:
    """Set fields of a frozen dataclass; arrays become read-only views."""
    for name, value in values.items():
        if isinstance(value, np.ndarray) and value.flags.writeable:
            value = value.view()
            value.flags.writeable = False
        object.__setattr__(record, name, value)


def trusted(kind: type[T], **columns: Any) -> T:
    """A frozen dataclass of columns that are valid already: nothing is checked; other fields have their defaults."""
    record = object.__new__(kind)
    set_columns(record, **columns)
    return record


def with_columns(record: T, **columns: Any) -> T:
    """A copy of a valid record with some columns replaced by valid ones; unlike ``replace``, it checks nothing."""
    kept = {name: getattr(record, name) for name in record.__dataclass_fields__}  # type: ignore[attr-defined]
    return trusted(type(record), **kept | columns)


def integers(values: ArrayLike, what: str, dtype: Any = np.int64) -> Ints:
    """Read-only column of int64 (or ``dtype``); fractions and numbers out of its range are errors."""
    refuse_masked_or_complex(values)
    array = np.asarray(values)
    whole = array.dtype.kind in "iub" or (array.dtype.kind == "f" and np.array_equal(array, np.floor(array)))
    if array.size and not whole:
        raise DataError(f"{what} must be whole numbers, not {array.dtype} such as {array.flat[0]!r}")
    bits = 8 * np.dtype(dtype).itemsize
    if array.size and (array.dtype.kind in "uf" or array.dtype.itemsize > np.dtype(dtype).itemsize):
        low, high = array.min(), array.max()
        if not -(2.0 ** (bits - 1)) <= low <= high < 2.0 ** (bits - 1):
            raise DataError(f"{what} {high if high > 0 else low} is beyond {bits}-bit whole numbers; number from 0")
    return frozen(array, dtype)


def smallest_type(top: int) -> type[np.signedinteger[Any]]:
    """The smallest signed integer type that holds 0 .. ``top`` + 1."""
    return np.int8 if top < 127 else np.int16 if top < 32767 else np.int32


def numbers(values: ArrayLike, what: str, *, positive: bool = False, unit: str = "row") -> Floats:
    """Read-only float64 column without NaN or infinity (nor negative values if ``positive``)."""
    try:
        column = frozen(values, np.float64)
    except (TypeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{what} must be numbers: {error}") from None
    bad = ~np.isfinite(column)
    if positive:
        bad |= column < 0
    if bad.any():
        k = int(np.argmax(bad))
        kind = "finite and not negative" if positive else "finite"
        raise DataError(
            f"{unit} {k}: {what} {column[k]} is not {kind} ({bad.sum()} such {unit}s); correct or remove them"
        )
    if positive and len(column) * float(column.max(initial=0.0)) > MOST_WEIGHT:
        k = int(np.argmax(column))
        raise DataError(
            f"{unit} {k}: {what} {column[k]} is too large, as sums of {len(column)} such {unit}s are beyond "
            f"floating-point numbers; divide every {what} by a common factor"
        )
    return column


def offsets_of(values: ArrayLike, n_rows: int) -> Ints:
    """Read-only offsets that rise from 0 to ``n_rows``."""
    offsets = integers(values, "offsets")
    if len(offsets) < 1 or offsets[0] != 0 or offsets[-1] != n_rows or (np.diff(offsets) < 0).any():
        raise DataError(f"offsets must rise from 0 to the number of rows, {n_rows}")
    return offsets


def offsets_from_sizes(sizes: ArrayLike) -> Ints:
    """Offsets of lists with the given numbers of rows."""
    return np.concatenate([[0], np.cumsum(np.asarray(sizes, dtype=np.int64))]).astype(np.int64)


def list_of_rows(offsets: Ints) -> Ints:
    """The list number of every row."""
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def rows_of(offsets: Ints, which: Ints) -> tuple[Ints, Ints]:
    """Rows of the selected lists, in that order, and their offsets."""
    sizes = np.diff(offsets)[which]
    new = offsets_from_sizes(sizes)
    return np.arange(new[-1]) + np.repeat(offsets[which] - new[:-1], sizes), new


def descending_order(grade: Floats, offsets: Ints) -> Ints:
    """Row order that sorts each list by descending grade; rows of equal grade keep their order.  O(rows log rows).

    >>> descending_order(np.array([1.0, 2.0, 2.0, 0.0, 3.0]), np.array([0, 3, 5]))
    array([1, 2, 0, 4, 3])
    """
    return np.lexsort((-grade, list_of_rows(offsets)))


def dense_tiers(values: NDArray[Any], offsets: Ints) -> Ints:
    """Tiers 0, 1, ..., without gaps, of rows sorted by ascending ``values`` within each list (0 is the smallest)."""
    if not len(values):
        return np.zeros(0, np.int64)
    new = np.empty(len(values), np.int64)
    new[0] = 0
    new[1:] = values[1:] != values[:-1]
    count = np.cumsum(new)
    starts = offsets[:-1][np.diff(offsets) > 0]
    first = np.zeros(len(values), np.int64)
    first[starts] = 1
    return count - count[starts][np.cumsum(first) - 1]


def tier_runs(tier: Ints, offsets: Ints) -> tuple[Ints, Ints]:
    """The first row and the number of rows of every tier of every list; rows are sorted by tier within each list.

    O(rows).

    >>> tier_runs(np.array([0, 0, 1, 1]), np.array([0, 3, 4]))  # tiers of two rows and of one, then another list
    (array([0, 2, 3]), array([2, 1, 1]))
    """
    owner = list_of_rows(offsets)
    new = np.ones(len(tier), np.bool_)
    new[1:] = (tier[1:] != tier[:-1]) | (owner[1:] != owner[:-1])
    first = np.flatnonzero(new)
    return first, np.diff(np.append(first, len(tier)))


def number_tiers(tier: Ints, offsets: Ints) -> tuple[Ints, Ints]:
    """The index of each row's tier among all tiers of all lists (rows,), and the list of each tier.  O(rows)."""
    first, size = tier_runs(tier, offsets)
    return np.repeat(np.arange(len(first)), size), list_of_rows(offsets)[first]


def is_missing(value: Any) -> bool:
    """Whether a value is missing: ``None``, NaN, NaT, NA or masked."""
    return (
        value is None
        or type(value).__name__ in ("NaTType", "NAType")
        or value is np.ma.masked
        or (not isinstance(value, str | int) and bool(value != value))
    )


def _refuse_numbers(names: Iterable[Any], column: Iterable[Any], what: str) -> None:
    """Refuse numbers that are ambiguous as names: floats beyond 2^53, and ``True`` mixed with 1."""
    for name in names:
        if isinstance(name, float) and abs(name) >= 2.0**53:
            raise DataError(
                f"{what} {name!r} is a floating-point number beyond 2^53, where neighbors are one number; "
                "pass such names as whole numbers or as text"
            )
    mixed = (0 in names or 1 in names) and bool in set(map(type, column))
    if mixed and len({type(v) is bool for v in column if v == 0 or v == 1}) > 1:
        raise DataError(f"{what} names mix True or False with 1 or 0, which are equal; write one of them as text")


def first_appearance(code: Ints, n: int) -> Ints:
    """The codes that occur among 0 .. n - 1, in order of first appearance.  O(len(code) + n log n)."""
    first = np.full(n, len(code))
    first[code[::-1]] = np.arange(len(code))[::-1]
    order = np.argsort(first, kind="stable")
    return order[: int(np.count_nonzero(first < len(code)))]


def recode(
    code: Ints, values: Sequence[Any], what: str, known: Sequence[Hashable] | None = None, dtype: Any = np.int64
) -> tuple[Ints, Names]:
    """Translate codes of ``values`` into codes of the names that occur, by first appearance, or of ``known``."""
    used = first_appearance(code, len(values))
    new = np.empty(len(values), dtype)
    new[used], names = encode([values[k] for k in used.tolist()], what, known)
    return new[code], names


def encode(values: Any, what: str, known: Sequence[Hashable] | None = None, unit: str = "row") -> tuple[Ints, Names]:
    """Integer codes and names, by first appearance or as in ``known``; missing and unknown names are errors."""
    if type(values) is not list:
        refuse_masked_or_complex(values)
    column = values.tolist() if isinstance(values, np.ndarray) else list(values)
    try:
        index: dict[Any, int] = dict.fromkeys(column, 0)
    except TypeError:
        raise DataError(f"{what} names must be hashable (text, numbers), not {type(column[0]).__name__}") from None
    if not set(map(type, index)) <= NEVER_MISSING and any(map(is_missing, index)):
        at = [k for k, value in enumerate(column) if is_missing(value)]
        said = column[at[0]]
        raise DataError(
            f"{unit} {at[0]}: {what} is missing ({said!r}; {len(at)} such {unit}s); name it or remove the {unit}"
        )
    _refuse_numbers(index, column, what)
    names = tuple(index) if known is None else unique_names(known, what)
    position = {name: k for k, name in enumerate(names)}
    unknown = [name for name in index if name not in position]
    if unknown:
        at = [k for k, value in enumerate(column) if value not in position]
        raise DataError(
            f"{unit} {at[0]}: {what} {column[at[0]]!r} is not among the {len(names)} given names "
            f"({len(at)} such {unit}s, {len(unknown)} names); add the name or remove the {unit}"
        )
    return np.fromiter(map(position.__getitem__, column), np.int64, len(column)), names


def unique_names(values: Iterable[Hashable], what: str) -> Names:
    """Names as a tuple; duplicates and missing names are errors."""
    if not isinstance(values, Iterable):
        raise DataError(f"{what} names must be a list of names, not {values!r}")
    names = tuple(values.tolist() if isinstance(values, np.ndarray) else values)
    try:
        kinds = set(map(type, dict.fromkeys(names)))
    except TypeError:
        raise DataError(f"{what} names must be hashable (text, numbers), not {type(names[0]).__name__}") from None
    asked = () if kinds <= NEVER_MISSING else names
    missing = [k for k, name in enumerate(asked) if is_missing(name)]
    if missing:
        raise DataError(f"{what} names contain a missing one, number {missing[0]} ({len(missing)} such); name it")
    if len(set(names)) != len(names):
        repeats = len(names) - len(set(names))
        raise DataError(f"{what} name {first_repeat(names)!r} occurs more than once ({repeats} repeats)")
    return names


def distinct(groups: Iterable[Iterable[T]]) -> tuple[T, ...]:
    """The different values of several groups, by first appearance."""
    return tuple(dict.fromkeys(value for group in groups for value in group))


def plain_names(names: list[Hashable]) -> list[Hashable]:
    """Names for one column: unchanged if they have a single type that is no collection, else as text."""
    kinds = {type(name) for name in names}
    one = len(kinds) <= 1 and not any(issubclass(kind, tuple | frozenset) for kind in kinds)
    return names if one else [str(name) for name in names]


def first_repeat(values: Iterable[Hashable]) -> Any:
    """The first value that occurs a second time, or ``None`` if all differ.  O(values)."""
    seen: set[Hashable] = set()
    for value in values:
        if value in seen:
            return value
        seen.add(value)
    return None


def is_frame(data: Any) -> bool:
    """Whether ``data`` has named columns: a mapping, or any data frame that Narwhals supports."""
    # look at the type: on a lazy frame, evaluating the columns themselves may be costly
    return isinstance(data, Mapping) or hasattr(type(data), "columns") or hasattr(type(data), "__dataframe__")


def column_names(frame: Any) -> list[str]:
    """The column names of a mapping or of any data frame."""
    if isinstance(frame, Mapping):
        return list(frame)
    import narwhals as nw

    return list(nw.from_native(frame).collect_schema().names())


def column(frame: Any, name: str) -> Any:
    """One column of a mapping or of any data frame (pandas, Polars, Arrow, DuckDB, ...) as a NumPy array or list."""
    if isinstance(frame, Mapping):
        names = list(frame)
        if name in frame:
            return frame[name]
    else:
        import narwhals as nw

        table = nw.from_native(frame)
        names = table.collect_schema().names()
        if name in names:
            selected = table.select(name)
            eager = selected.collect() if isinstance(selected, nw.LazyFrame) else selected
            return eager[name].to_numpy()
    raise DataError(f"column {name!r} is not there; the columns are {names}")


def table(X: Any) -> tuple[Any, Names | None]:
    """A matrix (anything NumPy or SciPy accepts), and its column names if ``X`` is a data frame or mapping."""
    if is_sparse(X):  # first: SciPy's dictionaries of keys are mappings too
        return X, None
    if isinstance(X, Mapping):
        return np.column_stack(list(X.values())), tuple(X)
    if not is_frame(X):
        refuse_masked_or_complex(X)
        return X, None
    eager = eager_frame(X)
    return eager.to_numpy(), tuple(eager.columns)


def eager_frame(X: Any) -> Any:
    """A data frame through Narwhals, collected; two columns of one name are a ``DataError``."""
    import narwhals as nw

    try:
        frame = nw.from_native(X)
    except nw.exceptions.DuplicateError:
        raise DataError(f"two columns are named {first_repeat(X.columns)!r}; rename one") from None
    return frame.collect() if isinstance(frame, nw.LazyFrame) else frame


def as_csr(X: Any, what: str, unit: str = "row") -> Any:
    """A SciPy sparse matrix as CSR; indices out of range, which SciPy does not check, are a ``DataError``.

    O(stored values).
    """
    if getattr(X, "format", "") in ("csr", "csc", "bsr"):
        n_major, n_minor = X.shape if X.format != "csc" else X.shape[::-1]
        if X.format == "bsr":
            n_major, n_minor = n_major // X.blocksize[0], n_minor // X.blocksize[1]
        start, index = X.indptr, X.indices
        rising = len(start) == n_major + 1 and start[0] == 0 and bool((start[1:] >= start[:-1]).all())
        if not rising or start[-1] > min(len(index), len(X.data)):
            raise DataError(f"the sparse matrix of {what}s is damaged: its indptr does not rise from 0 to its values")
        used = index[: start[-1]]
        if len(used) and (used.min() < 0 or used.max() >= n_minor):
            bad = (used < 0) | (used >= n_minor)
            at = int(np.argmax(bad))
            row = int(np.searchsorted(start, at, side="right")) - 1
            where, which = (f"{unit} {row}", what) if X.format != "csc" else (f"{what} {row}", unit)
            raise DataError(
                f"{where}: {which} {used[at]} is not in 0..{n_minor - 1} ({int(bad.sum())} such {which}s); correct it, "
                "or make the matrix wider"
            )
    return X.tocsr()


def is_sparse(X: Any) -> bool:
    """Whether ``X`` is a SciPy sparse matrix."""
    return hasattr(X, "tocsr")


def effective_weights(weight: Floats) -> Floats:
    """Design weights times a factor, so that their sum is the effective number of rows, (sum w)^2 / sum w^2 (Kish).

    >>> effective_weights(np.array([10.0, 30.0]))
    array([0.4, 1.2])
    """
    top = float(weight.max(initial=0.0))
    if top <= 0.0:
        return weight
    share = weight / top
    return np.asarray(share * (share.sum() / float(share @ share)))


def same_columns(a: Any, b: Any, but: tuple[str, ...] = ()) -> bool:
    """Whether two records of one class are equal in all columns except the notes and those in ``but``."""
    return all(_same(getattr(a, f), getattr(b, f)) for f in a.__dataclass_fields__ if f not in ("notes", *but))


def _same(a: Any, b: Any) -> bool:
    if a is None or b is None:
        return a is b
    if not isinstance(a, np.ndarray):
        return bool(a == b)
    return bool(np.array_equal(a, b, equal_nan=a.dtype.kind == "f"))


def hold_out(n: int, share: float, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Split 0 .. ``n`` - 1 at random, each part in ascending order: the rest, and a ``share`` held out.

    Both parts have at least one, if there are two.

    >>> rest, held_out = hold_out(10, 0.2, np.random.default_rng(0))
    >>> rest, held_out
    (array([0, 1, 2, 3, 5, 7, 8, 9]), array([4, 6]))
    """
    order = rng.permutation(n)
    size = min(max(1, round(share * n)), max(n - 1, 0))
    return np.sort(order[size:]), np.sort(order[:size])


SHOWN = 1_000_000
"""Rows above which nothing is counted to be shown in a notebook."""


def data_html(data: Any) -> str:
    """Data as an HTML table of what ``describe`` counts, with the notes of the reader below it.

    >>> from placet import Comparisons
    >>> "Comparisons(2 pairs, 3 items, 2 votes)" in data_html(Comparisons.from_battles("ab", "bc", ["a", "b"]))
    True
    """
    size = max((len(column) for column in vars(data).values() if isinstance(column, np.ndarray)), default=0)
    about = data.describe() if hasattr(data, "describe") and size <= SHOWN else {}
    facts = {name: value for name, value in about.items() if value is not None and name != "kind"}
    return render("data/templates/notebook_data.html", title=repr(data), facts=facts, notes=data.notes)
