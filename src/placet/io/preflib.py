"""PrefLib data: .soc, .soi, .toc and .toi (strict or tied orders, complete or incomplete), .cat (categories)."""

import re
from collections import Counter
from collections.abc import Iterator

import numpy as np

from placet.data import DataError, Rankings
from placet.data.arrays import dense_tiers, first_repeat, offsets_from_sizes
from placet.data.parameters import with_checked_options
from placet.data.rankings import Unlisted
from placet.io.files import Source, bare_suffix, name_of, read_lines, write_lines
from placet.io.tables.tables import FileHead
from placet.io.text import TEXT, OnError, Problems, format_number, parse_whole, quote

TYPES = ("soc", "soi", "toc", "toi")
CATEGORIES = "cat"
MAX_ALTERNATIVES = 1_000_000

_ALTERNATIVES = re.compile(r"^#\s*NUMBER ALTERNATIVES", re.MULTILINE)
_NAME = re.compile(r"#\s*ALTERNATIVE NAME ([0-9]{1,18})\s*:(.*)", re.IGNORECASE)
_HEADER = re.compile(r"#\s*([A-Z ]+?)\s*:(.*)", re.IGNORECASE)
_GROUP = r"[0-9]{1,18}|\{\s*[0-9]{1,18}(?:\s*,\s*[0-9]{1,18})*\s*\}"
_ORDER = re.compile(rf"\s*(?:{_GROUP})(?:\s*,\s*(?:{_GROUP}))*\s*")
_PART = re.compile(_GROUP)
_CLASS = rf"{_GROUP}|\{{\s*\}}"
_CLASSES = re.compile(rf"\s*(?:{_CLASS})(?:\s*,\s*(?:{_CLASS}))*\s*")
_CLASS_PART = re.compile(_CLASS)
_SHAPE = "a line is: count: 3,1,{2,4}"


def looks_like_preflib(head: FileHead) -> str | None:
    """Match text with a PrefLib header."""
    return TEXT if _ALTERNATIVES.search(head.text) else None


@with_checked_options
def read_preflib(source: Source, *, unlisted: Unlisted = "absent", on_error: OnError = "raise") -> Rankings:
    """Read the ballots of a PrefLib file, with the count of each order as its weight; items are in header order.

    ``unlisted="last"`` puts the items that an order leaves out in one last tier.  The header's counts of voters and
    orders are checked, and that orders are strict or complete if the data type says so.  Alternatives that share a name
    get their number appended; those without a name are named by their number.

    In a file of categories (``.cat``), the categories are in order, best first, and the numbers below: an item of the
    last one is rated 0, of the one before 1, ...; with two they are approved or not (`placet.aggregate.committees`).

    Returns
    -------
    Rankings
        One list per order, weighted by its count.

    >>> import io
    >>> head = "# DATA TYPE: soc\\n# NUMBER ALTERNATIVES: 2\\n# ALTERNATIVE NAME 1: tea\\n# ALTERNATIVE NAME 2: milk\\n"
    >>> text = head + "3: 1,2\\n1: 2,1\\n"
    >>> ballots = read_preflib(io.StringIO(text))
    >>> ballots.orders(), ballots.weight
    ([['tea', 'milk'], ['milk', 'tea']], array([3., 1.]))
    """
    problems = Problems(name_of(source), on_error)
    header, names, lines = _split(source)
    kind = (header.get("DATA TYPE") or bare_suffix(source)[1:]).lower()
    if kind not in (*TYPES, CATEGORIES):
        raise DataError(
            f"{problems.name}: data type {quote(kind)} is not one of {[*TYPES, CATEGORIES]}; only orders and "
            "categories can be read"
        )
    items = _items(header, names, problems.name)
    orders: list[list[tuple[int, ...]]] = []
    weight: list[float] = []
    for number, line in lines:
        parsed = _ballot(line, len(items), kind)
        if isinstance(parsed, str):
            problems.add(number, None, parsed, _SHAPE)
        else:
            weight.append(parsed[0])
            orders.append(parsed[1])
    problems.close()
    if not orders:
        raise DataError(f"{problems.name}: no orders; {_SHAPE}")
    if not problems.kinds:
        _check_counts(header, weight, problems.name)
    if kind == CATEGORIES:
        said = parse_whole(header.get("NUMBER CATEGORIES", "")) or 0
        return _rate_by_category(orders, items, weight, unlisted, max(said, *map(len, orders)))
    ballots = [[tuple(items[k - 1] for k in tier) for tier in order] for order in orders]
    return Rankings.from_orders(ballots, items=items, weight=weight, unlisted=unlisted)


def _rate_by_category(
    orders: list[list[tuple[int, ...]]], items: tuple[str, ...], weight: list[float], unlisted: Unlisted, most: int
) -> Rankings:
    """Ballots that rate each item by its category of ``most``; an item in none is absent, or rated 0 if it is last."""
    rows: list[tuple[int, int]] = []
    sizes = []
    for order in orders:
        rated = {k - 1: most - 1 - place for place, tier in enumerate(order) for k in tier}
        if unlisted == "last":
            rated = dict.fromkeys(range(len(items)), 0) | rated
        rows += sorted(rated.items(), key=lambda row: -row[1])
        sizes.append(len(rated))
    offsets = offsets_from_sizes(sizes)
    item, score = np.array(rows, np.int64).reshape(-1, 2).T
    tier = dense_tiers(-score.astype(np.float64), offsets)
    return Rankings.from_codes(item, tier, offsets, items, weight, score=score)


def _split(source: Source) -> tuple[dict[str, str], dict[int, str], list[tuple[int, str]]]:
    """Header fields, names of alternatives, and the numbered lines of orders."""
    header: dict[str, str] = {}
    names: dict[int, str] = {}
    lines = []
    for number, text in read_lines(source):
        line = text.strip()
        if not line.startswith("#"):
            if line:
                lines.append((number, line))
        elif match := _NAME.fullmatch(line):
            names[int(match.group(1))] = match.group(2).strip()
        elif match := _HEADER.fullmatch(line):
            header[match.group(1).upper()] = match.group(2).strip()
    return header, names, lines


def _items(header: dict[str, str], names: dict[int, str], name: str) -> tuple[str, ...]:
    """Names of alternatives 1 .. n, made unique."""
    said = header.get("NUMBER ALTERNATIVES")
    n = None if said is None else parse_whole(said)
    if n is None or not 1 <= n <= MAX_ALTERNATIVES:
        shown_value = "is missing" if said is None else f"{quote(said)} is not in 1..{MAX_ALTERNATIVES}"
        raise DataError(f"{name}: the header NUMBER ALTERNATIVES {shown_value}; begin with # NUMBER ALTERNATIVES: n")
    beyond = [k for k in names if not 1 <= k <= n]
    if beyond:
        raise DataError(
            f"{name}: alternative {beyond[0]} has a name but there are {n} alternatives; correct the header"
        )
    plain = [names.get(k) or str(k) for k in range(1, n + 1)]
    shared = {label for label, count in Counter(plain).items() if count > 1}
    unique = tuple(f"{label} ({k})" if label in shared else label for k, label in enumerate(plain, 1))
    if len(set(unique)) < n:
        raise DataError(f"{name}: alternatives share names even when their numbers are added; rename them")
    return unique


def _ballot(line: str, n: int, kind: str) -> tuple[float, list[tuple[int, ...]]] | str:
    """(count, tiers of alternatives), or what is wrong."""
    count, colon, order = line.partition(":")
    weight = parse_whole(count.strip())
    if not colon or weight is None:
        return f"{quote(count)} is not a count followed by a colon"
    whole, part = (_CLASSES, _CLASS_PART) if kind == CATEGORIES else (_ORDER, _PART)
    if not whole.fullmatch(order):
        return f"{quote(order.strip())} is not {'a list of categories' if kind == CATEGORIES else 'an order'}"
    tiers = [tuple(map(int, re.findall(r"[0-9]+", one))) for one in part.findall(order)]
    listed = [k for tier in tiers for k in tier]
    if listed and not 1 <= min(listed) <= max(listed) <= n:
        wrong = next(k for k in listed if not 1 <= k <= n)
        return f"alternative '{wrong}' is not in 1..{n}"
    if len(set(listed)) < len(listed):
        return f"alternative '{first_repeat(listed)}' occurs more than once on one ballot"
    if kind.startswith("s") and any(len(tier) > 1 for tier in tiers):
        return f"{quote(order.strip())} ties alternatives in data of type {kind}"
    if kind.endswith("c") and len(listed) < n:
        return f"{quote(order.strip())} leaves out alternatives in data of type {kind}"
    return float(weight), tiers


def _check_counts(header: dict[str, str], weight: list[float], name: str) -> None:
    for key, found in (("NUMBER VOTERS", int(sum(weight))), ("NUMBER UNIQUE ORDERS", len(weight))):
        said = header.get(key)
        if said and parse_whole(said) != found:
            raise DataError(f"{name}: the header says {key} {quote(said)} but there are {found}; correct the header")


def write_preflib(rankings: Rankings, target: Source, *, title: str = "") -> None:
    """Write ballots as PrefLib text, each order once; the data type is inferred (and must fit the suffix).

    Weights must be whole numbers; the format has no place for agents, instances and scores.  Read back, the ballots are
    those of ``rankings`` without repeats (``collapsed``) if item names are text.

    >>> import io
    >>> import placet
    >>> file = io.BytesIO()
    >>> ballots = placet.Rankings.from_orders([["tea", "milk"], ["milk", "tea"]], weight=[2, 1])
    >>> write_preflib(ballots, file, title="Drinks")
    >>> file.getvalue().decode().splitlines()[-2:]
    ['2: 1,2', '1: 2,1']
    """
    for what in ("agent", "instance"):
        if getattr(rankings, what) is not None:
            raise DataError(f"PrefLib has no place for the {what} of a ballot; write CSV with write_ballots")
    plain = Rankings(rankings.item, rankings.tier, rankings.offsets, rankings.weight, items=rankings.items).collapsed()
    if (plain.weight != plain.weight.round()).any() or (plain.weight < 1).any():
        raise DataError("PrefLib counts ballots in whole numbers; weights must be 1, 2, ...")
    for name in plain.items:
        if "\n" in str(name) or "\r" in str(name) or str(name) != str(name).strip():
            raise DataError(
                f"item name {name!r} cannot be written: PrefLib names are one line without blanks around it"
            )
    if any(len(ballot) == 0 for ballot in plain):
        raise DataError("a ballot lists nothing; PrefLib has no empty orders: leave it out")
    tied = any(len(tier) > 1 for ballot in plain for tier in ballot)
    complete = bool((plain.offsets[1:] - plain.offsets[:-1] == plain.n_items).all())
    kind = ("t" if tied else "s") + ("oc" if complete else "oi")
    suffix = bare_suffix(target)[1:]
    if suffix == CATEGORIES:
        raise DataError(f"categories are only read; name the file .{kind}")
    if suffix in TYPES and ((tied and suffix[0] == "s") or (not complete and suffix[2] == "c")):
        raise DataError(f"these ballots are of type {kind}, not {suffix}; name the file .{kind}")
    write_lines(target, _lines(plain, suffix if suffix in TYPES else kind, title))


def _lines(rankings: Rankings, kind: str, title: str) -> Iterator[str]:
    yield f"# TITLE: {title}"
    yield f"# DATA TYPE: {kind}"
    yield f"# NUMBER ALTERNATIVES: {rankings.n_items}"
    yield f"# NUMBER VOTERS: {format_number(float(rankings.weight.sum()))}"
    yield f"# NUMBER UNIQUE ORDERS: {len(rankings)}"
    for k, name in enumerate(rankings.items, 1):
        yield f"# ALTERNATIVE NAME {k}: {name}"
    for weight, ballot in zip(rankings.weight.tolist(), rankings):
        groups = [[str(rankings.index[name] + 1) for name in tier] for tier in ballot]
        order = ",".join(group[0] if len(group) == 1 else "{" + ",".join(group) + "}" for group in groups)
        yield f"{format_number(weight)}: {order}"
