"""The page says how few votes decide the first places, names nobody, and carries its certificate."""

import re

import pytest
from html_pages import parsed

import placet
from placet.aggregate.proof.certificate import read_certificate
from placet.aggregate.proof.fragility_search import fragility_of
from placet.aggregate.proof.places_decided import FEWEST_VOTES, decided_places
from placet.report import consensus_page, write_consensus_page

ROWS = [("x", "y", "a", "loud")] * 24 + [("y", "x", "a", f"v{k}") for k in range(9)] + [("y", "<z>", "a", "w")] * 5


def board(rows=ROWS):
    a, b, outcome, agent = zip(*rows)
    return placet.consensus(placet.Comparisons.from_battles(a, b, outcome, agent=agent))


def words_of(page):
    return " ".join(" ".join(parsed(page).words).split())


def test_votes_and_voters_that_decide_are_on_the_page():
    result = board()
    text = words_of(consensus_page(result, result.asked.data))
    assert "How few votes decide it" in text
    assert "At most 15 of 38 votes decide the first place." in text
    assert "One of 11 voters decides the first place." in text
    votes, voters = (found for found in decided_places(result) if found.claims[0].claim.k == 1)
    assert (votes.count, voters.count) == (15, 1)
    assert voters.claims[0].removed == ({"voter": "loud", "votes": 24.0},)


def test_a_page_and_its_certificate_name_no_voter():
    result = board()
    page = consensus_page(result, result.asked.data, certificate=result.certificate())
    assert "loud" not in page
    assert b"loud" not in str(result.certificate()).encode()


def test_few_votes_and_boards_without_data_have_no_section():
    result = board(ROWS[: FEWEST_VOTES - 1])
    assert "How few votes" not in consensus_page(result, result.asked.data)
    other = placet.consensus(result.asked.data, "borda", bootstrap=20)
    assert decided_places(other, unasked=True) == []
    assert decided_places(result) != []
    assert decided_places(result.in_points()) != []


def test_the_page_carries_its_certificate_and_says_how_to_check(tmp_path):
    result = board()
    made = result.certificate(files=[__file__])
    path = tmp_path / "page.html"
    write_consensus_page(path, result, result.asked.data, certificate=made)
    assert read_certificate(path) == made
    text = words_of(path.read_text())
    assert "placet verify board.cert.json test_proof_section.py" in text
    assert made["files"][0]["sha256"] in text
    assert "Check this page" not in words_of(consensus_page(result, result.asked.data))
    path.write_text(re.sub(r'download="board.cert.json"', 'download="x"', path.read_text()))
    with pytest.raises(placet.DataError, match="carries no certificates"):
        read_certificate(path)


def test_places_below_the_first():
    """Of four votes for the third place, three must go; the second place is shared by nobody."""
    orders = [["a", "b", "c", "d"]] * 9 + [["a", "b", "d", "c"]] * 5
    ballots = placet.Rankings.from_orders(orders)
    found = placet.fragility(ballots, "borda", goal="place", k=3)
    assert found.sentences() == ["c is third: 4 of 14 ballots decide it"]
    assert found.place_words() == "4 of 14 ballots decide the third place"
    assert placet.fragility(ballots, "borda", goal="place").claims[0].claim.goal == "best"
    tied = placet.Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"]])
    assert placet.fragility(tied, "borda", goal="place", k=2).claims == ()


def test_a_place_is_lost_to_an_item_above_it_too():
    """b is second by far over c, and one ballot behind a: without that ballot it is not second but first as well."""
    board = placet.consensus(placet.Rankings.from_orders([["a", "b", "c"]] * 6 + [["b", "a", "c"]] * 5), "borda")
    found = fragility_of(board, board.asked, goal="place", k=2, prove=0)
    assert found.count == 1


def test_votes_of_many_days_are_counted_by_what_they_say():
    a, b, outcome, agent = zip(*ROWS)
    days = [f"2026-01-{1 + k % 28:02}" for k in range(len(ROWS))]
    dated = placet.Comparisons.from_battles(a, b, outcome, agent=agent, time=days)
    result = placet.consensus(dated, "bradley-terry", drift=0.05, step="1w")
    table = re.search(r"each set was found.*?</table>", consensus_page(result, dated), re.DOTALL)[0]
    assert "2026" not in table
    count = sum(int(cell) for cell in re.findall(r">(\d+)</td>", table))
    assert count == decided_places(result)[0].count
