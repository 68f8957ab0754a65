"""How few votes decide the first places of a board, and the certificate of a board."""

from collections.abc import Mapping
from typing import Any

from placet.aggregate.proof.certificate import canonical
from placet.aggregate.proof.places_decided import decided_places
from placet.studio.question import Question
from placet.studio.tasks.board import answer, certificate_of_board

MOST_LISTED = 200


def fragility(progress: Any, *, path: str, question: Mapping[str, Any]) -> dict[str, Any]:
    """How few votes, and how few voters, decide the first three places: a sentence and the rows removed for each."""
    asked = Question.from_json(question)
    found = answer(path, asked, progress)
    places = decided_places(found.board_for(asked))
    if not places:
        raise ValueError("how few votes decide a place is computed for one board of at least two items")
    shown = [
        {"words": one.place_words() or one.sentences()[0], "rows": rows[:MOST_LISTED], "total": len(rows)}
        for one in places
        for rows in ([dict(row) for row in one.claims[0].removed],)
    ]
    return {"places": shown, "stamp": found.stamp}


def certificate(progress: Any, *, path: str, question: Mapping[str, Any], name: str) -> bytes:
    """The certificate of a board as a file; ``name`` is that of the dataset."""
    asked = Question.from_json(question)
    return canonical(certificate_of_board(answer(path, asked, progress), asked, name)) + b"\n"
