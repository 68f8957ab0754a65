"""The report page: complete, self-contained, and honest about what it leaves out."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest

import placet
from placet.report import consensus_page, write_consensus_page

VOID = {"meta", "br", "img"}


class Balanced(HTMLParser):
    """Every opened element is closed in order; texts are collected."""

    def __init__(self):
        super().__init__()
        self.open, self.words, self.tags = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def parsed(page):
    parser = Balanced()
    parser.feed(page)
    assert parser.open == []
    return parser


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
    assert not tags & {"script", "link", "img", "iframe"}
    assert not re.search(r"(src|href)=|url\(|@import", consensus_page(result, votes))
    assert any(note in words for note in result.notes)


def test_a_rule_without_errors_says_so_and_leaves_out_what_it_cannot_show(votes):
    ballots = placet.Rankings.from_orders([["a", "b", "c"], ["b", "a"], [("a", "c"), "b"]])
    page = parsed(consensus_page(placet.consensus(ballots, "borda"), ballots))
    words = " ".join(page.words)
    assert "without standard errors" in words
    assert "Who beats whom" not in words


def test_many_items_are_cut_and_counted():
    votes = placet.simulate.battles(np.linspace(2, -2, 250), 5000)
    words = " ".join(parsed(consensus_page(placet.consensus(votes, "bradley-terry"), votes)).words)
    assert "The best 200 of 250 items are shown." in words
    assert "The best 40 of 250 items are shown." in words


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
