"""What a reader must know, in lay words; the notes that only say how the result was made belong to its log."""

import re
from collections.abc import Hashable, Sequence

from placet.report.figures import Notes, PageBlock, Sentence, sentences

TIES = r"\1 votes were ties. They count: a tie says that two items are close."
VOTERS = r"Votes of one voter are not independent: each of \1 counts as one."

LAY: tuple[tuple[str, str], ...] = (
    (r"read as ", ""),
    (r"no method was named: ", ""),
    (r"prior: .*they show no differences", "The data show no differences between the items."),
    (
        r"prior: ",
        "An item with little data is drawn toward the middle, so that a few lucky results do not put it on top.",
    ),
    (r"(\d\S*) ties? (?:was|were) fitted by", TIES),
    (r"uncertainty(?: from|:) ", ""),
    (
        r"standard errors are by agent: (\d+) agents",
        VOTERS,
    ),
    (r"variances: ", ""),
    (r"\w+ scale: ", ""),
    (r"groups are numbered by falling share", ""),
    (r"scores move by a random walk", "Scores change over time; the ranking is that of the last time step."),
    (r"scores are those of the last step", ""),
    (r"forecasts allow for a deviation", ""),
    (r"there is no prior", ""),
)
"""Pattern of a note that belongs to the log -> what a reader must know of it, or nothing."""

OF_SEVERAL = {
    TIES: "Some votes were ties. They count: a tie says that two items are close.",
    VOTERS: "Votes of one voter are not independent: each voter counts as one.",
}
"""Words with a number, which is that of one board -> the same of several boards, which have a number each."""


def notes_blocks(notes: Sequence[str], names: Sequence[Hashable] = (), *, several: bool = False) -> list[PageBlock]:
    """What to know: the lay words of the log, then the notes that warn, as they are.

    ``several``: the notes are those of several boards.
    """
    words: dict[str, None] = {}
    warnings: list[str] = []
    for note in notes:
        found = _lay(note, several)
        if found is None:
            warnings.append(note[:1].upper() + note[1:] + ("" if note.endswith(".") else "."))
        elif found:
            words[found] = None
    shown: list[Sentence] = [*((text,) for text in words), *sentences(warnings, names)]
    return [Notes(notes=shown)] if shown else []


def log_blocks(notes: Sequence[str], names: Sequence[Hashable] = ()) -> list[PageBlock]:
    """All notes, word for word, for "How it was made"."""
    return [Notes(notes=sentences(notes, names))] if notes else []


def _lay(note: str, several: bool) -> str | None:
    """The lay words of a note of the log; None for a note that warns."""
    text = re.sub(r"^(?:All|\d+ of) \d+ .*? \(.*?\): ", "", note)  # of a set of instances
    for pattern, words in LAY:
        found = re.match(pattern, text)
        if found:
            return found.expand(OF_SEVERAL.get(words, words) if several else words)
    return None
