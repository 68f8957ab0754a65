"""Parts of the page: the first sentence, notes, who beats whom, columns of the owner, anchors, dates, slices, axes."""

import html
import re

import numpy as np
import pytest
from html_pages import parsed
from typer.testing import CliRunner

import placet
from placet.aggregate import Consensus, ConsensusSet
from placet.cli import app
from placet.report import Origin, consensus_page, slices_page
from placet.report.history_chart import history_chart
from placet.report.notes_section import LAY, notes_blocks

ABOUT = {
    "ant": {"kind": "insect", "link": "https://example.org/?a=1&b=2"},
    "bee": {"kind": "<i>", "link": "javascript:alert(1)"},
}


@pytest.fixture(scope="module")
def votes():
    return placet.simulate.battles([1.0, 0.0, -1.0], 300, tie=-0.5, items=["ant", "bee", "cat"], random_state=0)


def section(page, heading):
    """The text of one section."""
    found = re.search(f"<h2>{heading}</h2>(.*?)</section>\n(?:<section|<footer)", page, re.S)
    return "" if found is None else " ".join(html.unescape(re.sub("<[^>]+>", " ", found[1])).split())


def lead(page):
    return " ".join(html.unescape(re.sub("<[^>]+>", "", re.search('<p class="lead">(.*?)</p>', page, re.S)[1])).split())


def test_items_of_which_little_is_known_are_named_where_they_could_be_first(votes):
    board = Consensus(("ant", "bee", "cat"), [2.0, 0.0, -0.1], method="m", stderr=[0.1, 0.1, 5.0])
    assert board.tiers() == [("ant",), ("bee", "cat")]
    assert board.rank_interval()[0].tolist() == [1, 2, 1]
    assert lead(consensus_page(board, votes)) == (
        "ant comes first among 3 items, from 300 votes. With what is known, cat could be first, too."
    )


def test_the_first_sentence_is_what_others_are_shown_of_the_page(votes):
    page = consensus_page(placet.consensus(votes), votes, title='A "title"')
    found = {
        attrs.get("property", attrs.get("name")): attrs.get("content")
        for tag, attrs in parsed(page).tags
        if tag == "meta"
    }
    assert found["og:title"] == 'A "title"'
    assert found["og:description"] == found["description"] == lead(page)


def test_lay_words_come_first_and_the_log_last(votes):
    board = placet.consensus(votes)
    page = consensus_page(board, votes)
    known, log = section(page, "What to know"), section(page, "How it was made")
    assert "drawn toward the middle" in known
    assert f"{votes.describe()['ties']:g} votes were ties." in known
    assert all(note in log for note in board.notes)
    assert not any(note in known for note in board.notes)
    slices = slices_page(ConsensusSet({"en": board, "de": board}, by="language", method="bradley-terry"))
    assert "Some votes were ties." in section(slices, "What to know")
    apart = placet.Comparisons.from_battles(["a", "a", "x"], ["b", "b", "y"], ["a", "b", "a"])
    warned = placet.consensus(apart)
    (warning,) = (note for note in warned.notes if "groups" in note)
    assert warning[1:] in section(consensus_page(warned, apart), "What to know")


def test_every_pattern_of_the_log_is_of_a_note_and_unknown_notes_warn():
    known = ["prior: x", "All 3 languages (as in de): prior: x", "2 of 3 languages (de): read as votes: a"]
    assert [len(notes_blocks([note])) for note in known] == [1, 1, 0]
    (shown,) = notes_blocks(["something odd happened to 'x'"])
    assert shown.notes == [("Something odd happened to 'x'.",)]
    source = "".join(path.read_text() for path in placet_files())
    for pattern, _ in LAY:
        word = max(re.findall(r"[a-z ]{4,}", pattern), key=len)
        assert word.strip() in source, pattern


def placet_files():
    from pathlib import Path

    return (p for p in Path(placet.__file__).parent.rglob("*.py") if p.name != "notes_section.py")


def test_who_beats_whom_has_numbers_as_heads_and_names_ties(votes):
    page = consensus_page(placet.consensus(votes), votes)
    heat = re.search('<table class="heat">(.*?)</table>', page, re.S)[1]
    assert re.findall(r'<th scope="col"[^>]*>(\d+)</th>', heat) == ["1", "2", "3"]
    assert "the rest are ties." in heat
    a, b = np.triu_indices(25, 1)
    plain = placet.Comparisons.from_battles(a.astype(str), b.astype(str), np.where((a + b) % 3, "a", "b"))
    page = consensus_page(placet.consensus(plain), plain)
    heat = re.search('<table class="heat">(.*?)</table>', page, re.S)[1]
    assert "ties" not in heat
    assert heat.count('<th scope="row">') == 20


def test_ranks_stand_in_one_language(votes):
    board = placet.consensus(votes)
    page = consensus_page(board, votes)
    spans = [f"{a}–{b}" if a < b else str(a) for a, b in zip(*(ranks[board.order] for ranks in board.rank_interval()))]
    assert re.findall(r'<td class="rank soft span">([^<]*)</td>', page) == spans
    assert re.findall(r'<td class="rank">([^<]*)</td>', page) == spans
    assert "holds for all items together (95%)" in section(page, "How sure the ranks are")


def test_the_owner_adds_columns_and_links(votes):
    page = consensus_page(placet.consensus(votes), votes, about=ABOUT)
    assert page.count('<td class="owner">') == 3
    assert "<bdi>&lt;i&gt;</bdi>" in page
    assert '<a href="https://example.org/?a=1&amp;b=2" rel="noopener noreferrer"><bdi>ant</bdi></a>' in page
    assert "javascript" not in re.sub(r"<script>.*?</script>", "", page, flags=re.S)
    with pytest.raises(placet.DataError, match=r"none of the 1 items described, first 'fly'.* first 'ant'"):
        consensus_page(placet.consensus(votes), votes, about={"fly": {"kind": "insect"}})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("item,kind\nant,1\nant,2\n", r"about.csv:3: 'ant' has a row above, too"),
        ("item,kind\n,1\n", "about.csv:2: item is missing"),
        ("item\nant\n", "'item' is its only column"),
    ],
)
def test_a_table_about_items_is_checked(tmp_path, text, message):
    (tmp_path / "about.csv").write_text(text)
    with pytest.raises(placet.DataError, match=message):
        placet.io.read_item_columns(tmp_path / "about.csv")


def test_the_command_shows_dates_and_columns_of_the_owner(tmp_path):
    (tmp_path / "votes.csv").write_text(
        "model_a,model_b,winner,date\nant,bee,a,2026-10-03\nbee,ant,a,2026-01-31\nant,bee,a,2026-03-31\n"
    )
    (tmp_path / "about.csv").write_text("name,kind\nant,insect\n")
    asked = ["aggregate", str(tmp_path / "votes.csv"), "--about", str(tmp_path / "about.csv")]
    target = tmp_path / "page.html"
    assert CliRunner().invoke(app, [*asked, "--report", str(target)]).exit_code == 0
    page = target.read_text()
    assert lead(page) == "ant and bee: 3 votes (January to October 2026) do not tell which of them is best."
    assert "<h1>Ranking of 2 items</h1>" in page
    assert '<td class="owner"><bdi>insect</bdi></td>' in page
    with pytest.raises(ValueError, match="add --report PAGE.html"):
        CliRunner().invoke(app, asked, catch_exceptions=False)


def test_every_row_has_its_own_anchor():
    names = ["GPT 5", "gpt-5", "gpt-5-2", "<>", "נ"]
    ballots = placet.Rankings.from_orders([names])
    page = parsed(consensus_page(placet.consensus(ballots, "borda"), ballots))
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert [one for one in ids if one.startswith("item-")] == [
        "item-gpt-5",
        "item-gpt-5-2",
        "item-gpt-5-2-2",
        "item-x",
        "item-נ",
    ]
    targets = {attrs["href"][1:] for tag, attrs in page.tags if tag == "a" and attrs["href"].startswith("#")}
    assert targets <= set(ids)


def test_slices_are_switched_and_compared(votes):
    page = slices_page(placet.consensus({"soil": votes, "air": votes}, "bradley-terry"), about=ABOUT)
    found = parsed(page)
    assert [attrs["id"] for _, attrs in found.tags if attrs.get("class") == "choice"] == ["slice-1-soil", "slice-2-air"]
    ids = [attrs["id"] for _, attrs in found.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert page.count('<th scope="row" class="name">') == 6
    assert "Ranks side by side" in found.words


def test_axes_have_round_numbers_and_dates_and_lines_their_names_apart(votes):
    board = placet.consensus(votes)
    low, high = board.interval()
    ticks = re.search(r'<span class="ticks">(.*?)</span></span>', consensus_page(board, votes))[1]
    shown = [float(text.replace("−", "-")) for text in re.findall(r">([^<]+)</span>", ticks + "</span>")]
    assert 3 <= len(shown) <= 7
    assert all(round(tick * 2) == tick * 2 and low.min() <= tick <= high.max() for tick in shown)
    rng = np.random.default_rng(0)
    days = np.datetime64("2023-11-20") + rng.integers(0, 460, 600)
    a = rng.integers(0, 4, 600)
    names = np.array(["ant", "bee", "cat", "a name that is much longer than the room beside"])
    moving = placet.Comparisons.from_battles(
        names[a], names[(a + 1) % 4], np.where(rng.random(600) < 0.5, "a", "b"), time=days
    )
    drifting = placet.consensus(moving, "bradley-terry", drift=0.1, step="1m")
    chart = history_chart(drifting, drifting.timeline)
    assert [text for _, text in chart.times] == ["Jan 2024", "Apr 2024", "Jul 2024", "Oct 2024", "Jan 2025"]
    places = sorted(line.at for line in chart.lines)
    assert min(np.diff(places)) >= 15.9
    assert {line.label for line in chart.lines} == {"ant", "bee", "cat", "a name that …room beside"}
    page = consensus_page(drifting, moving, origin=Origin())
    assert "(November 2023 to February 2025)" in lead(page)
    assert all(f">{line.label}<" in page for line in chart.lines)


def test_the_page_of_slices_says_how_many_data_and_from_when():
    votes = placet.Comparisons.from_battles(["ant"] * 3, ["bee"] * 3, ["a", "a", "b"])
    found = placet.consensus({"soil": votes, "air": votes})
    told = lead(slices_page(found, origin=Origin(period=("2026-01-03", "2026-10-30"))))
    assert told.endswith(", from 6 votes (January to October 2026).")
    assert lead(slices_page(found)).endswith(", from 6 votes.")
