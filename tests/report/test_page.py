"""The report page: complete, self-contained, and honest about what it leaves out."""

import html
import io
import json
import re
from base64 import b64decode

import numpy as np
import polars as pl
import pytest
from html_pages import parsed
from polars.testing import assert_frame_equal
from typer.testing import CliRunner

import placet
from placet.aggregate import METHODS, Consensus
from placet.axioms import audit
from placet.cli import app
from placet.report import Origin, consensus_page, write_consensus_page
from placet.report.audit_section import QUESTIONS
from placet.report.page_lead import lead_of


@pytest.fixture(scope="module")
def votes():
    return placet.simulate.battles(np.linspace(1, -1, 6), 600, items=["<ant>", "bee & co", "cat", "dog", "eel", "fox"])


def test_the_page_is_whole_and_self_contained(votes):
    result = placet.consensus(votes, "bradley-terry", ties="davidson")
    page = parsed(consensus_page(result, votes, title="A <title>"))
    words = " ".join(page.words)
    for expected in (
        "<ant>",
        "bee & co",
        "Ranking",
        "Who beats whom",
        "How sure the ranks are",
        "Method",
        "Data",
        "davidson",
    ):
        assert expected in words
    tags = {tag for tag, _ in page.tags}
    assert not tags & {"img", "iframe"}
    assert [attrs["rel"] for tag, attrs in page.tags if tag == "link"] == ["icon"]
    text = consensus_page(result, votes)
    assert all(link.startswith(("data:", "#")) for link in re.findall(r'(?:src|href)="([^"]*)"', text))
    assert not re.search(r"url\(|@import", text)
    assert any(note in words for note in result.notes)


def test_a_rule_without_errors_says_so_and_leaves_out_what_it_cannot_show(votes):
    ballots = placet.Rankings.from_orders([["a", "b", "c"], ["b", "a"], [("a", "c"), "b"]])
    page = parsed(consensus_page(placet.consensus(ballots, "borda"), ballots))
    words = " ".join(page.words)
    assert "without standard errors" in words
    assert "Who beats whom" not in words


def test_all_items_are_listed_and_what_is_cut_is_counted(monkeypatch):
    votes = placet.simulate.battles(np.linspace(2, -2, 250), 5000)
    result = placet.consensus(votes, "bradley-terry")
    text = consensus_page(result, votes)
    assert text.count('<th scope="row" class="name">') == 250
    assert "The best 20 of 250 items are shown." in text
    monkeypatch.setattr("placet.report.page.MOST_LISTED", 100)
    cut = consensus_page(result, votes)
    assert cut.count('<th scope="row" class="name">') == 100
    assert "The best 100 of 250 items are shown." in cut
    assert download(cut, "ranking.csv") == download(text, "ranking.csv")  # all items, whatever is listed


def download(page, name):
    link = re.search(f'<a download="{name}" href="data:[a-z/]+;charset=utf-8;base64,([^"]+)"', page)[1]
    return b64decode(link).decode()


def test_the_data_of_the_page_can_be_downloaded_with_all_digits(votes):
    result = placet.consensus(votes, "bradley-terry")
    page = consensus_page(result, votes, title="T", origin=Origin(files=("v.csv",), seed=7))
    table = pl.read_csv(io.StringIO(download(page, "ranking.csv")))
    assert_frame_equal(table, result.to_frame(), check_exact=True)
    found = json.loads(download(page, "ranking.json"))
    assert found["ranking"] == result.to_frame().to_dicts()
    assert (found["title"], found["method"], found["file"], found["seed"]) == ("T", "bradley-terry", "v.csv", "7")


def test_the_page_says_where_it_comes_from(votes):
    origin = Origin(
        files=("a.csv", "b.csv"), command="placet aggregate a.csv b.csv", seed=3, date="2026-11-16 12:00 UTC"
    )
    words = parsed(consensus_page(placet.consensus(votes, "bradley-terry"), votes, origin=origin)).words
    for fact in ("a.csv, b.csv", "placet aggregate a.csv b.csv", "3", "2026-11-16 12:00 UTC"):
        assert fact in words


def test_the_command_writes_a_page_with_a_title_and_the_same_bytes_for_one_date(votes, tmp_path, monkeypatch):
    placet.io.write(votes, tmp_path / "votes.csv")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    pages = []
    for name in ("one.html", "two.html"):
        command = ["aggregate", str(tmp_path / "votes.csv"), "--report", str(tmp_path / name), "--title", "Best <pets>"]
        assert CliRunner().invoke(app, command).exit_code == 0
        pages.append((tmp_path / name).read_text())
    assert pages[0] == pages[1]
    assert "<h1>Best &lt;pets&gt;</h1>" in pages[0]
    assert "1970-01-01 00:00 UTC" in pages[0]
    assert "votes.csv" in parsed(pages[0]).words
    with pytest.raises(ValueError, match="add --report PAGE.html"):
        CliRunner().invoke(app, [*command[:2], "--title", "T"], catch_exceptions=False)


def test_scores_have_the_digits_that_their_errors_allow_and_never_an_exponent():
    scores, stderr = [2056.4321, 1.23456, -0.5, 12.0], [35.0, 0.0321, 0.5, 0.0]
    result = Consensus(("a", "b", "c", "d"), scores, method="m", stderr=stderr)
    shown = re.findall(
        r'<td class="num score">([^<]*)</td>',
        consensus_page(result, placet.Rankings.from_orders([["a", "b", "c", "d"]])),
    )
    assert [text.strip("\u2007\u2008") for text in shown] == ["2,056", "12.000", "1.235", "−0.50"]
    assert (
        len({len(text.replace(",", "").replace("−", "").lstrip("0123456789")) for text in shown}) == 1
    )  # points in line
    votes = placet.Rankings.from_orders([["a", "b"]] * 2060 + [["b", "a"]] * 3)
    assert not re.search(
        r"\d[eE][+-]?\d",
        re.sub(
            r"<style>.*?</style>|<script>.*?</script>|<meta[^>]*>|href=\"[^\"]*\"",
            "",
            consensus_page(placet.consensus(votes, "borda"), votes),
            flags=re.S,
        ),
    )


def test_names_in_any_direction_stand_apart():
    names = ["abc", "מודל", "نموذج"]
    votes = placet.Rankings.from_orders([names, names[::-1], names])
    page = consensus_page(placet.consensus(votes, "borda"), votes)
    for name in names:
        for before, after in re.findall(
            f"(.{{5}}){name}(.{{6}})", re.sub(r'(?:title|href|content|id)="[^"]*"', "", page)
        ):
            assert name == "abc" or (before, after) == ("<bdi>", "</bdi>"), (before, after)


def test_every_method_and_every_check_has_public_words():
    for label, text in ((method.title, method.words) for method in METHODS.values()):
        assert label
        assert text.endswith(".")
        assert not re.search("``|theta|kernel", text)
    ballots = placet.Rankings.from_orders([["A", "B", "C"]] * 3 + [["B", "C", "A"]] * 2)
    page = consensus_page(placet.consensus(ballots, "borda"), ballots)
    assert "strong-condorcet" not in page
    assert "epsilon" not in page
    checks = {f.check for f in audit(ballots, "borda").findings} | {
        f.check for f in audit(two_instances(), "borda").findings
    }
    assert checks <= set(QUESTIONS)


def two_instances():
    return placet.Rankings.from_orders(
        [["a", "b", "c"], ["x", "y"], ["y", "x", "z"]], instance=["cats", "dogs", "dogs"]
    )


def test_odd_results_have_a_page():
    one = placet.Rankings.from_orders([["only"]])
    assert "<bdi>only</bdi></strong> comes first among 1 item, from 1 ballot." in consensus_page(
        placet.consensus(one, "borda"), one
    )
    level = placet.Rankings.from_orders([[("a", "b", "c", "d", "e", "f", "g")]])
    assert "and 2 more</strong> tie for the first place among 7 items, from 1 ballot." in consensus_page(
        placet.consensus(level, "borda"), level
    )
    table = placet.data.Scores.from_table([[0.9, 0.7], [0.8, 0.5], [0.1, 0.2]], items="xyz", tasks=["maths", "law"])
    page = consensus_page(placet.consensus(table, "mean"), table)
    parsed(page)
    assert METHODS["mean"].words in html.unescape(page)
    few = Consensus(("a", "b", "c"), [0.0, 1.0, 2.0], method="m", stderr=[0.1, 0.1, 50.0])
    votes = placet.Rankings.from_orders([["a", "b", "c"]])
    assert "Bars that end at the edge of the chart extend beyond it." in consensus_page(few, votes)


def first_sentence(c, data):
    lead = re.search('<p class="lead">(.*?)</p>', consensus_page(c, data), re.S)[1]
    return " ".join(html.unescape(re.sub("<[^>]+>", "", lead)).split())


def test_the_first_sentence_claims_no_more_than_the_table():
    even = placet.simulate.battles([0.5, 0.5, -2.0], 900, items=["a", "b", "c"], random_state=0)
    board = placet.consensus(even, "bradley-terry")
    assert [sorted(tier) for tier in board.tiers()] == [["a", "b"], ["c"]]
    first, second = board.ranking[:2]
    assert (
        first_sentence(board, even)
        == f"{first} and {second} lead among 3 items; 900 votes do not tell which of them is best."
    )
    clear = placet.simulate.battles([2.0, 0.0, -2.0], 900, items=["a", "b", "c"], random_state=0)
    assert first_sentence(placet.consensus(clear, "bradley-terry"), clear) == (
        "a comes first among 3 items, from 900 votes. With probability more than 99.9% it is truly first."
    )
    few = placet.Comparisons.from_battles(["a"], ["b"], ["a"])
    assert (
        first_sentence(placet.consensus(few, "bradley-terry"), few)
        == "a and b: 1 vote does not tell which of them is best."
    )


def test_a_rule_that_gives_an_order_shows_no_scores():
    ballots = placet.Rankings.from_orders([["a", "b", "c"]] * 5 + [["c", "b", "a"]] * 4 + [["b", "c", "a"]] * 3)
    for name in ("irv", "kemeny", "ranked-pairs", "bucklin", "schulze"):
        page = consensus_page(placet.consensus(ballots, name), ballots)
        assert "gives an order without scores." in page
        assert '<td class="num score">' not in page
        assert '<td class="plot">' not in page
    assert '<td class="num score">' in consensus_page(placet.consensus(ballots, "borda"), ballots)


def test_a_model_is_not_asked_for_a_ranking_without_ties(votes):
    question = QUESTIONS["universality"]
    ballots = placet.Rankings.from_orders([["a", "b", "c"]] * 5 + [["c", "b", "a"]] * 4)
    assert question not in consensus_page(placet.consensus(votes, "bradley-terry"), votes)
    assert question in consensus_page(placet.consensus(ballots, "borda"), ballots)


def test_the_page_appears_only_when_it_is_whole(votes, tmp_path, monkeypatch):
    result = placet.consensus(votes, "bradley-terry")
    target = tmp_path / "page.html"
    write_consensus_page(target, result, votes)
    before = target.read_bytes()
    monkeypatch.setattr("placet.report.page._method", lambda c: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_consensus_page(target, result, votes)
    assert target.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]


def test_the_first_sentence_says_by_whose_opinion():
    """Names stand at odd places of the sentence, where they are isolated from the text around them."""
    for apart, amount in ((0.0, 20), (3.0, 400)):
        data = placet.simulate.judged_votes([apart, 0.0, -apart], amount, amount, items=list("abc"), random_state=1)
        for target, whose in (("human", ["human"]), (None, [])):
            found = placet.consensus(placet.Sources(dict(data.items()), target))
            strong, rest = lead_of(found, "2 sources", 0.95)
            assert "".join(rest).count(" for human") == len(whose)
            assert list(rest[1::2]) == whose
            assert set(strong[1::2]) <= set("abc")
            assert len(rest) % 2 == len(strong) % 2 == 1
