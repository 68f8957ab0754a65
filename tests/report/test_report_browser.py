"""The page in a real browser: search and sort, the phone, the dark, names in any direction, and no fault by axe-core.

``browser.py`` says what they need.
"""

import csv
import itertools

import numpy as np
import pytest
from browser import faults_by_axe, needs_browser

import placet
from placet import simulate
from placet.report import Origin, write_consensus_page, write_slices_page

pytestmark = needs_browser
LONG = "A model with a very long name that somebody once thought was a good idea (instruct, quantized, 2026-11-16)"
NAMES = [
    "Ada",
    "מודל שפה (גדול)",
    "نموذج عربي ٣",
    "<img src=x onerror=alert(1)>",
    LONG,
    "x" * 90,
    "Bob 10",
    "Bob 9",
    "Cy",
]
SIZES = {"desktop": ({"width": 1200, "height": 850}, "light"), "phone": ({"width": 390, "height": 800}, "dark")}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("pages")
    votes = simulate.battles(np.linspace(1, -1, 9), 700, tie=-0.5, items=NAMES, random_state=1)
    origin = Origin(
        files=("votes.csv",), command="placet aggregate votes.csv " + "--ignore a,b " * 20, seed=0, date="now"
    )
    board = placet.consensus(votes, "bradley-terry", ties="davidson")
    write_consensus_page(path / "votes.html", board, votes, title="Which is best?", origin=origin)
    about = {name: {"organization": "Ada & Co", "license": "open", "link": "https://example.org"} for name in NAMES[:5]}
    write_consensus_page(
        path / "owned.html", board, votes, about=about, certificate=board.certificate(files=[__file__])
    )
    many = simulate.battles(np.linspace(2, -2, 129), 4000, random_state=1)
    write_consensus_page(path / "many.html", placet.consensus(many, "bradley-terry"), many)
    ballots = placet.Rankings.from_orders([["a", "b", "c"], ["b", "a"], [("a", "c"), "b"], ["d", "a"]] * 4)
    write_consensus_page(path / "count.html", placet.consensus(ballots, "stv", seats=2), ballots)
    orders = simulate.plackett_luce(np.linspace(1, -1, 6), 60, items=["ham", "tea", "pie", "cod", "cake", "jam"])
    write_consensus_page(path / "rounds.html", placet.consensus(orders, "irv"), orders)
    dated = placet.Comparisons.from_battles(
        list("aabc") * 30, list("bcca") * 30, ["a", "b", "tie"] * 40, time=[2020.0 + k / 12 for k in range(120)]
    )
    write_consensus_page(path / "dated.html", placet.consensus(dated, drift=0.5, step=1.0), dated)
    apart = {
        name: simulate.battles(np.linspace(s, -s, 5), 300, items=list("abcde")) for name, s in [("en", 1), ("فا", -1)]
    }
    write_slices_page(path / "slices.html", placet.consensus(apart, "bradley-terry"))
    return path


@pytest.fixture
def opened(chromium, folder):
    """A function that opens a page; what the browser complains about, or fetches, fails the test."""
    contexts, wrong = [], []

    def open_page(name, size="desktop", **options):
        viewport, scheme = SIZES[size]
        contexts.append(chromium.new_context(viewport=viewport, color_scheme=scheme, **options))
        page = contexts[-1].new_page()
        page.set_default_timeout(60_000)
        page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
        page.on(
            "request", lambda request: None if request.url.startswith(("file:", "data:")) else wrong.append(request.url)
        )
        page.goto((folder / name).as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not wrong, wrong


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["votes.html", "count.html", "slices.html", "owned.html", "many.html", "dated.html"])
def test_no_fault_by_axe_and_nothing_wider_than_the_screen(opened, name, size):
    page = opened(name, size)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    faults = faults_by_axe(page)
    if faults is None:
        pytest.skip("no axe-core; make build/axe.min.js")
    assert faults == []


def shown(page):
    return page.locator("table.league tbody tr:visible th").all_inner_texts()


def test_search_and_sort(opened):
    page = opened("votes.html")
    first = shown(page)
    assert sorted(first) == sorted(NAMES)
    page.get_by_label("Search").first.fill("bob")
    assert sorted(shown(page)) == ["Bob 10", "Bob 9"]
    assert page.get_by_text("2 of 9").is_visible()
    page.get_by_label("Search").first.fill("")
    league = page.locator("table.league")
    league.get_by_role("button", name="item").click()
    names = shown(page)
    assert names.index("Ada") < names.index("Bob 9") < names.index("Bob 10") < names.index("Cy")
    assert league.locator("th[aria-sort=ascending]").inner_text().startswith("item")
    league.get_by_role("button", name="support").click()
    support = [float(text.replace(",", "")) for text in league.locator("tbody td.support").all_inner_texts()]
    assert support == sorted(support, reverse=True)
    league.get_by_role("button", name="rank").click()
    assert shown(page) == first


def test_the_page_is_readable_without_its_script(opened):
    page = opened("votes.html", java_script_enabled=False)
    assert len(shown(page)) == 9
    assert page.locator("button, input").count() == 0
    assert page.get_by_role("heading", name="Audit").is_visible()


@pytest.mark.parametrize("size", SIZES)
def test_long_names_leave_the_chart_where_it_is(opened, size):
    page = opened("votes.html", size)
    boxes = [row.bounding_box() for row in page.locator("table.league tbody td.plot").all()]
    assert len({(round(box["x"]), round(box["width"])) for box in boxes}) == 1
    assert boxes[0]["width"] > 0.2 * SIZES[size][0]["width"]
    assert boxes[0]["x"] + boxes[0]["width"] < SIZES[size][0]["width"]


@pytest.mark.parametrize("size", SIZES)
def test_the_names_of_a_chart_over_time_are_in_sight(opened, size):
    page = opened("dated.html", size)
    boxes = [name.bounding_box() for name in page.locator(".history text.end").all()]
    assert len(boxes) == 3
    assert all(box["x"] > 0 and box["x"] + box["width"] <= SIZES[size][0]["width"] for box in boxes), boxes


def test_words_stand_whole_in_the_rows_of_a_count_on_a_phone(opened):
    page = opened("rounds.html", "phone")
    table = page.locator("table:has-text('round 1')").first
    lines = [row.bounding_box()["height"] for row in table.locator("tbody tr").all()]
    assert max(lines) < 90  # two or three lines; "is eliminated" letter by letter takes ten


@pytest.mark.parametrize("name", ["votes.html", "owned.html", "many.html"])
@pytest.mark.parametrize("width", [390, 688, 1200])
def test_the_ticks_of_charts_do_not_run_into_each_other(opened, name, width):
    page = opened(name)
    page.set_viewport_size({"width": width, "height": 1000})
    page.emulate_media(media="print" if width == 688 else "screen")
    for axis in page.locator(".ticks:visible").all():
        boxes = axis.evaluate(
            """(one) => [...one.children].filter((tick) => getComputedStyle(tick).visibility != "hidden").map((tick) => {
            const range = document.createRange(); range.selectNodeContents(tick); const box = range.getBoundingClientRect();
            return [box.left, box.right]})"""
        )
        assert all(before[1] < after[0] for before, after in itertools.pairwise(boxes)), boxes
        head = axis.locator("xpath=ancestor::th/following-sibling::th[1]")
        if head.is_visible() and head.bounding_box()["y"] < axis.bounding_box()["y"] + 10 and width > 600:
            assert boxes[-1][1] <= head.bounding_box()["x"] + 12, boxes


def test_the_data_are_downloaded(opened, tmp_path):
    page = opened("votes.html")
    with page.expect_download() as download:
        page.get_by_role("link", name="ranking.csv").click()
    download.value.save_as(tmp_path / "ranking.csv")
    with open(tmp_path / "ranking.csv", newline="") as file:
        assert sorted(row["item"] for row in csv.DictReader(file)) == sorted(NAMES)


def test_the_heads_of_a_long_table_stay_in_sight(opened):
    for size in SIZES:
        page = opened("many.html", size)
        page.evaluate("window.scrollTo(0, 2500)")
        tops = page.evaluate(
            "[...document.querySelectorAll('.league thead th')].map((h) => h.getBoundingClientRect().top)"
        )
        assert all(-1 <= top < 60 for top in tops), (size, tops)


def test_a_row_is_found_by_its_address(opened, folder):
    page = opened("many.html")
    name = page.locator("table.league tbody tr").nth(90).get_attribute("id")
    page.goto(f"{(folder / 'many.html').as_uri()}#{name}")
    box = page.locator(f"tr[id='{name}']").bounding_box()
    assert 20 < box["y"] < 200
    assert page.evaluate("document.querySelector(':target').id") == name


def test_slices_are_shown_one_at_a_time(opened, folder):
    page = opened("slices.html")
    assert [part.is_visible() for part in page.locator(".choice").all()] == [True, False]
    page.get_by_role("group", name="slice").get_by_role("button").nth(1).click()
    assert [part.is_visible() for part in page.locator(".choice").all()] == [False, True]
    page.goto("about:blank")
    page.goto(f"{(folder / 'slices.html').as_uri()}#en-item-a".replace("#en", "#1-en"))
    assert [part.is_visible() for part in page.locator(".choice").all()] == [True, False]
    bare = opened("slices.html", java_script_enabled=False)
    assert [part.is_visible() for part in bare.locator(".choice").all()] == [True, True]


def test_paper_has_whole_rows_and_plain_heads(opened, tmp_path):
    page = opened("many.html")
    page.emulate_media(media="print")
    assert page.locator(".league thead button:visible").count() == 0
    assert page.locator(".league thead .plain:visible").all_inner_texts() == [
        "rank",
        "could be",
        "tier",
        "item",
        "score",
        "support",
    ]
    style = "(query, name) => getComputedStyle(document.querySelector(query))[name]"
    assert page.evaluate(f"({style})('.league tbody tr', 'breakInside')") == "avoid"
    assert page.evaluate(f"({style})('.league thead', 'display')") == "table-header-group"
    assert page.evaluate(f"({style})('.league thead th.plot', 'position')") == "static"
    for sheet in (page, opened("owned.html")):
        sheet.emulate_media(media="print")
        sheet.set_viewport_size({"width": 688, "height": 1000})  # A4 between its margins
        assert sheet.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        assert sheet.locator(".league tbody th").first.bounding_box()["width"] > 90
