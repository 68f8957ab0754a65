"""Pictures that stand alone: they hold what they should, as XML that any reader takes; and those of the pages are whole."""

import runpy
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest

import placet

ROOT = Path(__file__).parents[2]
pictures = SimpleNamespace(**runpy.run_path(str(ROOT / "tools" / "pictures.py")))
SVG = "{http://www.w3.org/2000/svg}"
PAGES = ROOT / "docs"


def texts(picture):
    return ["".join(node.itertext()) for node in ElementTree.fromstring(picture).iter(f"{SVG}text")]


def votes(**options):
    rng = np.random.default_rng(0)
    a = rng.integers(0, 4, 600)
    b = (a + rng.integers(1, 4, 600)) % 4
    names = np.array(["<ant>", "bee", "cat", "dog"])
    won = rng.random(600) < 1 / (1 + np.exp(a - b))
    return placet.Comparisons.from_battles(names[a], names[b], np.where(won, "a", "b"), **options)


def test_boards_side_by_side_hold_every_item_dot_and_tier():
    data = votes()
    first, second = (placet.consensus(data, "bradley-terry", prior=prior) for prior in (0.3, 2.0))
    picture = pictures.boards_picture({"narrow": first, "wide & free": second})
    root = ElementTree.fromstring(picture)
    assert [text for text in texts(picture) if text in second.items] == second.ranking
    assert {"narrow", "wide & free"} <= set(texts(picture))
    assert len(root.findall(f"{SVG}circle")) == 4 * 2 + 2
    dashed = [line for line in root.findall(f"{SVG}line") if line.get("class") == "tier"]
    assert len(dashed) == len(second.tiers()) - 1
    left = [float(dot.get("cx")) for dot in root.findall(f"{SVG}circle") if dot.find(f"{SVG}title") is not None][1::2]
    assert left == sorted(left, reverse=True)  # the last board falls from the first row to the last


def test_raters_are_in_order_of_sharpness_and_coins_stand_out():
    data = votes(agent=[f"r{k}" for k in np.arange(600) % 6])
    board = placet.consensus(data, "bradley-terry", agents="sharpness")
    picture = pictures.raters_picture(board)
    found = board.agents_frame().sort("sharpness")["agent"].to_list()
    assert [text for text in texts(picture) if text.startswith("r")] == found
    assert {"a coin", "typical"} <= set(texts(picture))
    with pytest.raises(placet.DataError, match='fit it with agents="sharpness"'):
        pictures.raters_picture(placet.consensus(data, "bradley-terry"))


def test_lines_of_scores_over_time_have_names():
    data = votes(time=np.repeat(np.arange(2000, 2010), 60).astype(float))
    board = placet.consensus(data, "bradley-terry", drift=0.2, step=1.0)
    picture = pictures.history_picture(board)
    assert len(list(ElementTree.fromstring(picture).iter(f"{SVG}polyline"))) == 4
    assert set(board.items) <= set(texts(picture))
    with pytest.raises(placet.DataError, match='fit it with drift="learn"'):
        pictures.history_picture(placet.consensus(data, "bradley-terry"))


@pytest.mark.parametrize("page", sorted(pictures.DRAWN))
def test_every_page_shows_a_picture_that_is_there(page):
    assert f"../pictures/{page}.svg" in (PAGES / "howto" / f"{page}.md").read_text()
    picture = (PAGES / "pictures" / f"{page}.svg").read_text()
    assert texts(picture)
    assert len(picture) < 60_000


def test_rounds_of_a_count_have_the_votes_of_the_record():
    ballots = placet.read(ROOT / "docs/files/club.ballots")
    picture = pictures.rounds_picture(placet.consensus(ballots, "irv").record)
    assert {"8", "7", "5", "12", "20", "round 1: Bob is eliminated", "round 3: Cid is elected"} <= set(texts(picture))
    assert len(list(ElementTree.fromstring(picture).iter(f"{SVG}rect"))) == len(
        placet.consensus(ballots, "irv").record.rows()
    )


def test_contradicted_majorities_are_framed():
    ballots = placet.read(ROOT / "docs/files/abc.ballots")
    framed = lambda order: len(  # noqa: E731
        [
            one
            for one in ElementTree.fromstring(pictures.majorities_picture(ballots, order)).iter()
            if one.get("class") == "far"
        ]
    )
    assert framed(["B", "A", "C"]) == 1
    assert framed(["A", "B", "C"]) == 0
    assert {"40%", "60%", "100%", "0%"} <= set(texts(pictures.majorities_picture(ballots, ["B", "A", "C"])))


def test_a_picture_is_written_whole(tmp_path):
    pictures.write_picture(tmp_path / "x.svg", pictures.boards_picture({"x": placet.consensus(votes(), "borda")}))
    light, dark = (tmp_path / "x.svg").read_text(), (tmp_path / "x-dark.svg").read_text()
    assert texts(light) == texts(dark)
    assert "#1b2430" in light
    assert "#1b2430" not in dark


def test_grid_lines_stand_at_round_numbers():
    assert pictures.round_numbers(-0.93, 1.2) == [-0.5, 0.0, 0.5, 1.0]
