"""Formulas in docstrings: found by their shape, and written in LaTeX.

Docstrings are plain text: ``1 / (1 + e^-d), d = theta_i - theta_j``.  A formula is a run of words that are all
mathematics (letters, numbers, Greek names, operators), with a power, an index, a sum or an equation in it, and with
balanced brackets; everything else is left as prose.
"""

import re
from collections.abc import Iterator

GREEK = ("alpha", "beta", "gamma", "delta", "epsilon", "theta", "lambda", "sigma", "psi", "phi", "tau", "rho")
OPERATORS = {"sum": r"\sum", "prod": r"\prod", "log2": r"\log_2", "log": r"\log", "exp": r"\exp", "grad": r"\nabla"}
SIGNS = {
    "<=": r"\le", ">=": r"\ge", "!=": r"\ne", "<-": r"\leftarrow", "...": r"\dots", "*": r"\cdot", "inf": r"\infty",
    "{": r"\{", "}": r"\}", "⟨": r"\langle", "⟩": r"\rangle", "max": r"\max", "min": r"\min",
}  # fmt: skip
NAMED = {"max", "min", "sqrt", "abs", "floor", "inf"}
LOOSE = ("=", "+", "-", "/", "*", "<", ">", "<=", ">=", "!=", "<-", "sum", "prod", "log")
"""What does not begin or end a formula: a side of it is prose."""
_ITEM = re.compile(r"\s+|\.\.\.|<=|>=|!=|<-|\d+(?:\.\d+)?(?:e-?\d+)?|[A-Za-z]+\d*|[-+*/=<>|()\[\]{},^_'!:.;⟨⟩]")
_STRONG = re.compile(r"\^|_|\bsum\b|\bprod\b|\bexp\(|\bsqrt\(|\blog2?\b.*[()]|[=<>] .*[-+/*]|[-+/*] .*=")
_PROSE = re.compile(r"[a-z]_[a-z]{3,}|_$|^--+$|\.\w+\.|^[a-z]+-[a-z]+")


def parts(text: str) -> Iterator[tuple[bool, str]]:
    """The text in pieces: whether a piece is a formula, and the piece.  Joined, they are the text."""
    run: list[str] = []
    for word in re.split(r"(\s+)", text):
        if _is_mathematics(word) or (run and word.isspace()):
            run.append(word)
            if word.endswith((".", ";", ":")):
                yield from _judged(run)
                run = []
        else:
            yield from _judged(run)
            run = []
            yield False, word
    yield from _judged(run)


def _is_mathematics(word: str) -> bool:
    bare = word.rstrip(",.;:")
    if not bare or bare.isspace() or _PROSE.search(bare):
        return False
    names = re.findall(r"(?<![\^_{A-Za-z])[A-Za-z]+", re.sub(r"[_^][A-Za-z]+|[_^]\{[^}]*\}", "", bare))
    known = {*GREEK, *OPERATORS, *NAMED}
    plain = all(name in known or (len(name) == 1 and name not in ("a", "I")) or name == "log" for name in names)
    return plain and re.fullmatch(r"[\w\-+*/=<>|()\[\]{},^'!:.;]+", word) is not None


def _judged(run: list[str]) -> Iterator[tuple[bool, str]]:
    """A run of mathematics, without what is loose at its ends, if it is a formula; else prose."""
    first, last = 0, len(run)
    while first < last and (run[first].isspace() or run[first] in LOOSE[:-1]):
        first += 1
    while first < last and (run[last - 1].isspace() or run[last - 1].rstrip(",.;:") in LOOSE):
        last -= 1
    text = "".join(run)
    core = "".join(run[first:last]).rstrip(",.;:")
    head = len("".join(run[:first]))
    if core.startswith("(") and core.count("(") > core.count(")"):
        core, head = core[1:], head + 1
    if core.endswith(")") and core.count(")") > core.count("("):
        core = core[:-1].rstrip(",.;:")
    if _is_balanced(core) and _STRONG.search(core):
        yield False, text[:head]
        yield True, core
        yield False, text[head + len(core) :]
    elif text:
        yield False, text


def _is_balanced(text: str) -> bool:
    open_: list[str] = []
    for sign in re.findall(r"[()\[\]{}]", text):
        if sign in "([{":
            open_.append({"(": ")", "[": "]", "{": "}"}[sign])
        elif not open_ or open_.pop() != sign:
            return False
    return not open_ and text.count("|") % 2 == 0


def latex(formula: str) -> str:
    """A formula of a docstring in LaTeX.

    >>> latex("1 / (1 + e^-d), d = theta_i - theta_j")
    '1 / (1 + e^{-d}), d = \\\\theta_{i} - \\\\theta_{j}'
    """
    pairs = re.sub(r"<([^<>=]+, [^<>=]+)>", "⟨\\1⟩", formula)
    items = [one for one in _ITEM.findall(pairs) if not one.isspace()]
    words, place = [], 0
    while place < len(items):
        text, place = _term(items, place)
        words.append(text)
    return (
        re.sub(r" ([,)\]}!'])", r"\1", re.sub(r"([(\[]) ", r"\1", " ".join(words)))
        .replace(" ^", "^")
        .replace(" _", "_")
    )


def _term(items: list[str], place: int) -> tuple[str, int]:
    """One symbol with its powers and indices, and where the next begins."""
    word = items[place]
    following = items[place + 1] if place + 1 < len(items) else ""
    if word in "^_" and following:
        raised, place = _script(items, place + 1)
        return f"{word}{{{raised}}}", place
    if word == "sqrt" and following == "(":
        inside, place = _bracket(items, place + 1)
        return rf"\sqrt{{{inside}}}", place
    if word == "*" and place and items[place - 1] in GREEK:  # the conjugate of a function
        return "^*", place + 1
    return SIGNS.get(word) or OPERATORS.get(word) or _name(word), place + 1


def _name(word: str) -> str:
    if word in GREEK:
        return f"\\{word}"
    if numbered := re.fullmatch(r"([A-Za-z])(\d+)", word):
        return f"{numbered[1]}_{{{numbered[2]}}}"
    return rf"\text{{{word}}}" if re.fullmatch(r"[A-Za-z]{2,}", word) else word


def _script(items: list[str], place: int) -> tuple[str, int]:
    """What is raised or lowered: a bracket, a signed symbol, or a symbol; letters of an index stand side by side."""
    if items[place] in "({":
        return _bracket(items, place)
    if items[place] == "|" and "|" in items[place + 1 :]:
        end = items.index("|", place + 1)
        return f"|{' '.join(_name(one) for one in items[place + 1 : end])}|", end + 1
    sign = ""
    if items[place] == "-" and place + 1 < len(items):
        sign, place = "-", place + 1
    word = items[place]
    if re.fullmatch(r"[a-z]{2}", word) and word not in GREEK:
        return sign + " ".join(word), place + 1
    raised = items[place - 1 - len(sign)] == "^"
    text, place = _term(items, place)
    if raised and items[place : place + 1] == ["_"]:  # 2^N_k: the index is that of the power
        lowered, place = _script(items, place + 1)
        text += f"_{{{lowered}}}"
    return sign + text, place


def _bracket(items: list[str], place: int) -> tuple[str, int]:
    """The inside of a bracket, and where the text goes on behind it."""
    closing = {"(": ")", "{": "}"}[items[place]]
    words, place = [], place + 1
    while place < len(items) and items[place] != closing:
        if items[place] in "({":
            opened = items[place]
            inside, place = _bracket(items, place)
            words.append(f"({inside})" if opened == "(" else rf"\{{{inside}\}}")
            continue
        text, place = _term(items, place)
        words.append(text)
    return " ".join(words).replace(" ^", "^").replace(" _", "_"), place + 1
