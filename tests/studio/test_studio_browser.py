"""The studio in a real browser: the stories on a desktop and a phone, by keyboard, and without accessibility faults.

``browser.py`` says what they need.  Screenshots are kept in the folder ``$PLACET_ARTIFACTS``, if it is set.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("starlette")
from browser import faults_by_axe, needs_browser
from playwright.sync_api import expect

from placet import io, simulate

SHOTS = os.environ.get("PLACET_ARTIFACTS")  # a folder to keep screenshots in
NASTY = "<img src=x onerror=alert(1)>"
pytestmark = needs_browser
SIZES = {"desktop": {"width": 1200, "height": 850}, "phone": {"width": 390, "height": 800}}
OFTEN = """{
  const wait = window.setTimeout;  // live.js looks for news every 1.5 seconds, changed.js every 4
  window.setTimeout = (f, ms, ...more) => wait(f, ms === 1500 || ms === 4000 ? ms / 10 : ms, ...more);
}"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("browser")
    names = ["Ada", "Bob", NASTY, "Dora", "Eve", "Finn"]
    io.write(simulate.battles(np.linspace(1, -1, 6), 900, tie=-0.5, items=names, random_state=1), path / "votes.csv")
    io.write(
        simulate.plackett_luce([0.9, 0.5, 0.1, -0.5], 60, items=list("wxyz"), random_state=0), path / "ballots.txt"
    )
    io.write(simulate.queries(24, 8, 4, random_state=0), path / "search.letor")
    many = [f"item {k}" for k in range(10_000)]
    rows = np.random.default_rng(0).integers(0, 10_000, (60_000, 2))
    rows = rows[rows[:, 0] != rows[:, 1]]
    (path / "many.csv").write_text(
        "a,b,winner\n" + "".join(f"{many[i]},{many[j]},{'a' if i < j else 'b'}\n" for i, j in rows)
    )
    (path / "odd.csv").write_text("left one,right one,who won\npear,fig,pear\nfig,kiwi,fig\nkiwi,pear,plum\n")
    when = [f"2024-{month:02d}-{day:02d}" for month in range(1, 13) for day in (5, 15, 25)]
    rng = np.random.default_rng(2)
    lines = []
    for k, day in enumerate(when):
        strength = {"Ada": 1 - k / 18, "Bob": k / 18 - 1, "Cleo": 0.2}
        for first, second in (("Ada", "Bob"), ("Bob", "Cleo"), ("Cleo", "Ada")):
            for _ in range(6):
                wins = rng.random() < 1 / (1 + np.exp(strength[second] - strength[first]))
                lines.append(f"{first},{second},{'a' if wins else 'b'},{day}\n")
    (path / "dated.csv").write_text("a,b,winner,date\n" + "".join(lines))
    for name, rows in (("may.csv", "x,y,a\ny,z,a\n"), ("june.csv", "x,z,a\nz,y,b\n")):
        (path / name).write_text("a,b,winner\n" + rows)
    (path / "beacons.csv").write_text("id,x,y\nnorth,0,60\neast,60,0\nsouth,0,-60\n")
    way = np.column_stack([np.linspace(0, 8, 9), np.linspace(0, 4, 9)])
    fixed = np.array([[0, 60], [60, 0], [0, -60]])
    heard = [(day, t) for day, at in enumerate(way) for t in sorted(np.hypot(*(fixed - at).T) / 1.5)]
    (path / "arrivals.csv").write_text("day,arrival_s\n" + "".join(f"{day},{t:.4f}\n" for day, t in heard))
    return path


@pytest.fixture(scope="module")
def url(folder):
    files = [
        folder / name
        for name in ("votes.csv", "ballots.txt", "search.letor", "many.csv", "arrivals.csv", "beacons.csv", "dated.csv")
    ]
    code = "from placet.cli import main; main()"
    command = [
        sys.executable,
        "-c",
        code,
        "serve",
        "--no-browser",
        "--port",
        "0",
        "--workspace",
        str(folder / "w"),
        *map(str, files),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    yield process.stdout.readline().strip()
    process.terminate()
    process.communicate(timeout=60)


@pytest.fixture(params=["desktop", "phone"])
def page(request, chromium, url):
    yield from pages(chromium, url, request.param)


@pytest.fixture
def desktop(chromium, url):
    yield from pages(chromium, url, "desktop")


def pages(chromium, url, size):
    """A page that is signed in; anything that the browser complains about, or asks of another host, fails the test."""
    scheme = "dark" if size == "phone" else "light"
    context = chromium.new_context(viewport=SIZES[size], color_scheme=scheme, has_touch=size == "phone")
    context.add_init_script(OFTEN)
    page = context.new_page()
    page.set_default_timeout(60_000)
    expect.set_options(timeout=60_000)
    wrong = []
    host = url.split("/?")[0]
    page.on("console", lambda message: wrong.append(f"{page.url}: {message.text}") if message.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("dialog", lambda dialog: (wrong.append(f"dialog {dialog.message}"), dialog.dismiss()))
    page.on(
        "request",
        lambda request: None if request.url.startswith((host, "data:", "blob:")) else wrong.append(request.url),
    )
    page.goto(url)
    page.size = size
    page.host = host
    yield page
    context.close()
    assert not wrong, wrong


def dataset(page, name):
    page.goto(page.host)
    return page.get_by_role("link", name=name, exact=True).get_attribute("href").rsplit("/", 1)[1]


def shoot(page, name):
    if SHOTS:
        page.screenshot(path=Path(SHOTS, f"{name}-{page.size}.png"), full_page=True, caret="initial")


def check_axe(page):
    """No serious fault by axe-core, and nothing wider than the screen."""
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth + 1"), (
        f"{page.url} scrolls sideways"
    )
    rules = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
    faults = faults_by_axe(page, runOnly=rules)
    assert not faults, faults


def test_bring_data_and_correct_the_reading(page, folder):
    shoot(page, "home")
    check_axe(page)
    page.set_input_files("#files", folder / "odd.csv")
    page.wait_for_url("**/data/*")
    expect(page.locator(".error-box")).to_contain_text("do not tell which format this is")
    page.get_by_label("Format").select_option("battles")
    expect(page.locator(".error-box")).to_be_visible()
    for column, role in (("left one", "a"), ("right one", "b"), ("who won", "winner")):
        menu = page.get_by_label(f"What {column} is")
        menu.select_option(role)
        expect(page.get_by_label(f"What {column} is")).to_have_value(role)
        page.wait_for_load_state("networkidle")
    expect(page.locator("#understood")).to_contain_text("'plum' is not a, b or tie")
    expect(page.locator("#understood tbody tr")).to_have_count(1)
    shoot(page, "wrong-lines")
    check_axe(page)
    page.get_by_role("button", name="Leave these lines out").click()
    expect(page.locator("#understood .lead")).to_contain_text("votes")
    expect(page.locator("#understood .notes")).to_contain_text("left out 1 line")
    shoot(page, "understood")
    page.get_by_role("link", name="Open the board").click()
    expect(page.locator("#lead")).to_have_text("pear, fig and kiwi: 2 votes do not tell which of them is best.")


def test_several_files_are_opened_as_one(page, folder):
    page.set_input_files("#files", [folder / "may.csv", folder / "june.csv"])
    page.get_by_role("button", name="Open these 2 files as one dataset").click()
    page.wait_for_url("**/data/*")
    expect(page.get_by_role("heading", level=1)).to_contain_text("may.csv + june.csv")
    expect(page.locator("main")).to_contain_text("3 pairs, 3 items, 4 votes")
    shoot(page, "joined")
    check_axe(page)
    page.goto(page.host)
    names = ["Choose may.csv", "Choose june.csv"]
    join = page.get_by_role("button", name="Open the chosen as one dataset")
    expect(join).to_be_disabled()
    for name in names:
        page.get_by_label(name, exact=True).first.check()
    join.click()
    page.wait_for_url("**/data/*")
    expect(page.get_by_role("heading", level=1)).to_contain_text(" + ")


def test_a_board_answers(page):
    key = dataset(page, "votes.csv")
    page.goto(f"{page.host}/board/{key}")
    rows = page.locator(".board tbody tr:not(.tier)")
    expect(rows).to_have_count(6)
    expect(rows.first).to_contain_text("Ada")
    expect(page.get_by_role("button", name=NASTY)).to_be_visible()  # a name, not a tag
    shoot(page, "board")
    check_axe(page)
    page.get_by_role("link", name="Change the question").click()  # on a phone it is folded
    page.get_by_label("ties").select_option("davidson")
    expect(page.locator("#same")).to_contain_text("ties=davidson")
    assert "p.ties=davidson" in page.url
    page.get_by_role("button", name="Ada").click()
    page.get_by_role("button", name="Bob").click()
    expect(page.locator("#pair")).to_contain_text("Ada is above Bob.")
    check_axe(page)
    shoot(page, "pair")
    here = page.url
    page.goto(page.host)
    page.goto(here)  # the address is the view
    expect(page.locator("#pair")).to_contain_text("Ada is above Bob.")
    page.get_by_role("button", name="Close").click()
    for name, view in (("Chart", "intervals"), ("Who beats whom", "wins"), ("Rank probabilities", "ranks")):
        page.get_by_role("tab", name=name).click()
        expect(page.locator("#view .chart svg").first).to_be_visible()
        check_axe(page)
        shoot(page, view)
    page.get_by_role("tab", name="Export").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV", exact=True).click()
    assert Path(download.value.path()).read_text().startswith("item,score")


def name_dates(page):
    """The first who looks at scores over time says which column has the dates; the choice is kept."""
    column = page.get_by_label("Which column says when")
    figure = page.get_by_role("img", name="Scores over time")
    expect(column.or_(figure).first).to_be_visible()
    if column.is_visible():
        expect(column).to_have_value("date")
        check_axe(page)
        page.get_by_role("button", name="Read it as time").click()
    expect(figure).to_be_visible()


def test_scores_over_time(page):
    """The column of dates is named once; then scores are drawn over time, and the board is that of another month."""
    key = dataset(page, "dated.csv")
    page.goto(f"{page.host}/board/{key}?view=history")
    name_dates(page)
    expect(page.locator(".legend")).to_contain_text("Ada")
    check_axe(page)
    shoot(page, "history")
    page.get_by_label("Board at").select_option(index=1)
    expect(page.locator("#lead")).to_have_text(re.compile("^Ada"))
    assert "at=2024-01" in page.url
    page.get_by_label("Board at").select_option("")
    expect(page.locator("#lead")).to_have_text(re.compile("^Bob"))


def test_charts_are_saved_as_pictures(desktop):
    key = dataset(desktop, "votes.csv")
    desktop.goto(f"{desktop.host}/board/{key}?view=intervals")
    for kind, magic in (("SVG", b"<svg"), ("PNG", b"\x89PNG")):
        with desktop.expect_download() as download:
            desktop.get_by_role("button", name=kind, exact=True).click()
        content = Path(download.value.path()).read_bytes()
        assert content.startswith(magic)
        assert b"var(--" not in content


def test_ten_thousand_items_stay_usable(desktop):
    key = dataset(desktop, "many.csv")
    desktop.goto(f"{desktop.host}/board/{key}?method=borda")
    rows = desktop.locator(".board tbody tr:not(.tier)")
    expect(rows).to_have_count(100)
    desktop.get_by_label("Search").fill("item 777")
    expect(rows).to_have_count(11)
    assert "search=item+777" in desktop.url
    desktop.get_by_label("Search").fill("")
    expect(rows).to_have_count(100)
    desktop.get_by_role("button", name="Next").click()
    expect(desktop.locator(".pager")).to_contain_text("page 2 of")
    desktop.get_by_role("button", name="item", exact=True).click()
    expect(desktop.locator("th[aria-sort=ascending]")).to_contain_text("item")
    expect(rows.first).to_contain_text("item 0")


def test_a_slow_computation_can_be_cancelled(desktop):
    key = dataset(desktop, "dated.csv")
    desktop.goto(f"{desktop.host}/board/{key}?view=history")
    name_dates(desktop)  # ten thousand learned drifts take minutes on any machine
    desktop.goto(f"{desktop.host}/board/{key}?bootstrap=10000&method=bradley-terry&p.drift=learn&p.step=1m&seed=1")
    desktop.get_by_role("button", name="Cancel").click()
    expect(desktop.locator("#status")).to_contain_text("Cancelled")
    desktop.goto(f"{desktop.host}/board/{key}?method=borda")
    expect(desktop.locator("#lead")).to_contain_text("from 648 ")


def test_methods_side_by_side(page):
    key = dataset(page, "ballots.txt")
    page.goto(f"{page.host}/methods/{key}")
    expect(page.locator("#bump svg").first).to_be_visible()
    expect(page.locator("#left-out")).to_contain_text("combsum")
    expect(page.locator("#audit")).to_contain_text("condorcet", ignore_case=True)
    shoot(page, "methods")
    check_axe(page)
    page.locator("#audit-controls select").select_option("plurality")
    expect(page.locator("#audit caption")).to_contain_text("plurality")


def make_poll(page, title, kind, items):
    page.goto(f"{page.host}/polls")
    page.get_by_label("Question").fill(title)
    page.get_by_label("Items, one in each line").fill("\n".join(items))
    page.get_by_label("Asked").select_option(kind)
    check_axe(page)
    page.get_by_role("button", name="Make the poll").click()
    page.wait_for_url(re.compile(r"/polls/[0-9a-f]{16}$"))
    return page.locator("#link pre").inner_text()


def test_a_poll_of_pairs_by_mouse_and_keyboard(page):
    link = make_poll(page, "Which fruit?", "pairs", ["Apple", "Pear", NASTY])
    owner = page.url
    page.goto(link)
    page.locator(".choice").first.click()
    expect(page.locator("#status")).to_contain_text("Kept")
    shoot(page, "vote-pair")
    check_axe(page)
    page.keyboard.press("ArrowRight")
    expect(page.locator("#vote")).to_contain_text("2 answered")
    page.keyboard.press("ArrowDown")
    expect(page.locator(".done")).to_contain_text("Thank you")
    expect(page.locator("#live")).to_contain_text("3 answers from 1 voter")
    page.goto(owner)
    expect(page.locator("#live tbody tr")).to_have_count(3)
    shoot(page, "poll")
    check_axe(page)
    page.get_by_role("button", name="Close the poll").click()
    expect(page.locator("#live")).to_contain_text("closed")
    page.goto(link)
    expect(page.locator(".done")).to_contain_text("closed")


def test_the_best_and_the_worst_of_a_few_by_touch_and_by_keys(page):
    link = make_poll(page, "What do you drink?", "sets", ["Tea", "Milk", "Water", NASTY, "Juice"])
    owner = page.url
    page.goto(link)
    send = page.get_by_role("button", name="Send")
    expect(send).to_be_disabled()
    best, worst = page.locator("input[name=best]"), page.locator("input[name=worst]")
    press = (lambda node: node.tap()) if page.size == "phone" else (lambda node: node.click())
    press(best.nth(1))
    press(worst.nth(1))  # one item cannot be both
    expect(best.nth(1)).not_to_be_checked()
    expect(send).to_be_disabled()
    press(best.nth(0))
    expect(send).to_be_enabled()
    shoot(page, "vote-set")
    check_axe(page)
    press(send)
    expect(page.locator("#vote")).to_contain_text("Question 2 of 4")
    for answered in (2, 3, 4):
        page.keyboard.press("2")
        page.keyboard.press("4")
        expect(best.nth(1)).to_be_checked()
        expect(worst.nth(3)).to_be_checked()
        page.keyboard.press("Enter")
        expect(page.locator("#live")).to_contain_text(f"{answered} answers from 1 voter")
    expect(page.locator(".done")).to_contain_text("Thank you")
    page.goto(owner)
    expect(page.locator("#live tbody tr")).to_have_count(5)
    check_axe(page)
    page.get_by_role("button", name="Open as a board").click()
    page.wait_for_url("**/board/*")
    expect(page.locator("#lead")).to_have_text(re.compile("Water.* 4 ballots do not tell"))


def test_a_ballot_by_drag_and_drop_and_by_keyboard_alone(page):
    link = make_poll(page, "Where shall we go?", "ballots", ["The lake", "The hills", "A museum"])
    owner = page.url
    page.goto(link)
    grip = page.locator("[data-item]", has_text="The hills").locator(".grip")
    box, gap = grip.bounding_box(), page.locator("[data-gap='0']").bounding_box()
    page.mouse.move(box["x"] + 8, box["y"] + 8)
    page.mouse.down()
    page.mouse.move(gap["x"] + 60, gap["y"] + 4, steps=5)
    page.mouse.up()
    expect(page.locator(".tier-box")).to_have_count(1)
    button = page.get_by_role("button", name="Rank: The lake")
    button.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".tier-box")).to_have_count(2)
    up = page.get_by_role("button", name="Up: The lake")
    up.focus()
    page.keyboard.press("ArrowUp")
    expect(page.locator(".tier-box").first).to_contain_text("The lake")
    page.get_by_role("button", name="Tie: The hills").press("Enter")
    expect(page.locator(".tier-box")).to_have_count(1)
    page.get_by_role("button", name="Untie: The hills").press("Enter")
    expect(page.locator(".tier-box")).to_have_count(2)
    shoot(page, "vote-ballot")
    check_axe(page)
    page.get_by_role("button", name="Send the ballot").press("Enter")
    expect(page.locator(".done")).to_contain_text("Your ballot is kept")
    page.goto(owner)
    expect(page.locator("#live")).to_contain_text("1 answer from 1 voter")
    page.get_by_role("button", name="Open as a board").click()
    page.wait_for_url("**/board/*")
    expect(page.locator("#lead")).to_contain_text("The lake")


def test_two_browsers_see_one_truth(desktop, chromium):
    link = make_poll(desktop, "Which one?", "pairs", ["One", "Two"])
    other = chromium.new_context(viewport=SIZES["phone"]).new_page()
    other.goto(link)
    other.locator(".choice").first.click()
    expect(desktop.locator("#live")).to_contain_text("1 answer from 1 voter")
    assert other.request.get(desktop.host).status == 403  # a voter sees the poll and no more
    other.context.close()


def test_train_compare_and_explain(page):
    key = dataset(page, "search.letor")
    page.goto(f"{page.host}/rankers/{key}")
    for loss in ("pmop-fd", "ranknet"):
        expect(page.locator("#runs")).not_to_be_empty()
        runs = page.locator("#runs tbody tr").count()
        page.get_by_label("Loss", exact=True).select_option(loss)
        page.get_by_role("button", name="Train").click()
        expect(page.locator("#runs tbody tr")).to_have_count(runs + 1)
    expect(page.locator("#curve svg").first).to_be_visible()
    for box in page.locator("#runs input[type=checkbox]").all()[:2]:
        box.check()
        page.wait_for_load_state("networkidle")
    expect(page.locator("#compare tbody tr")).to_have_count(2)
    page.locator("#compare .queries button").first.click()
    expect(page.locator("#query input[type=checkbox]").first).to_be_visible()
    for box in page.locator("#query input[type=checkbox]").all()[:2]:
        box.check()
    expect(page.locator("#query")).to_contain_text("What each feature adds")
    shoot(page, "rankers")
    check_axe(page)
    with page.expect_download() as download:
        page.get_by_role("link", name=re.compile("Download")).first.click()
    assert download.value.suggested_filename.endswith(".placet")


def test_a_track_on_a_map(page):
    page.goto(f"{page.host}/tracks")
    page.get_by_label("End, if known").fill("8,4")
    for name, value in (
        ("sigma", "0.5"),
        ("diffusion", "4"),
        ("clutter rate", "0.1"),
        ("particles", "500"),
        ("chains", "2"),
    ):
        page.get_by_label(name, exact=True).fill(value)
    page.get_by_role("button", name="Track", exact=True).click()
    expect(page.locator("#found .chart svg").first).to_be_visible()
    shoot(page, "track")
    check_axe(page)


def test_a_page_of_a_file_that_has_changed_says_so_and_offers_the_new_board(desktop, folder):
    rows = ["Ada,Bob,a"] * 20 + ["Bob,Ada,a"] * 5
    (folder / "log.csv").write_text("a,b,winner\n" + "\n".join(rows) + "\n")
    desktop.goto(desktop.host)
    with desktop.expect_file_chooser() as chosen:
        desktop.locator("label", has_text="Choose files").click()
    chosen.value.set_files(folder / "log.csv")
    desktop.wait_for_url("**/data/*")
    key = desktop.url.rsplit("/", 1)[1]
    desktop.goto(f"{desktop.host}/board/{key}?a=Ada&b=Bob")
    expect(desktop.locator("#lead")).to_have_text(re.compile("^Ada"))
    expect(desktop.locator("#pair")).to_contain_text("20 put Ada first")
    assert desktop.locator("#changed").count() == 0
    kept = next(
        path for path in (folder / "w/files").iterdir() if path.read_bytes() == (folder / "log.csv").read_bytes()
    )
    with open(kept, "a") as log:
        log.write("Bob,Ada,a\n" * 60)
    expect(desktop.locator("#changed")).to_contain_text("log.csv has changed")
    check_axe(desktop)
    desktop.get_by_role("button", name="Show the new one").press("Enter")
    expect(desktop.locator("#lead")).to_have_text(re.compile("^Bob"))
    expect(desktop.locator("#pair")).to_contain_text("65 put Bob first")
    assert desktop.locator("#changed").count() == 0


def test_results_come_after_voting_and_a_ballot_that_stands_is_said_to(desktop, chromium):
    link = make_poll(desktop, "Which one?", "pairs", ["One", "Two", "Three"])
    desktop.goto(link)
    expect(desktop.locator(".choice")).to_have_count(2)
    assert desktop.locator("#live").inner_text() == ""
    desktop.locator(".choice").first.click()
    expect(desktop.locator("#live")).to_contain_text("1 answer from 1 voter")
    desktop.goto(link)
    expect(desktop.locator("#live")).to_contain_text("1 answer from 1 voter")
    desktop.goto(f"{desktop.host}/polls")
    desktop.get_by_label("A second answer").select_option("refuse")
    desktop.get_by_label("Question").fill("Where to?")
    desktop.get_by_label("Items, one in each line").fill("Here\nThere")
    desktop.get_by_label("Asked").select_option("ballots")
    desktop.get_by_role("button", name="Make the poll").click()
    desktop.wait_for_url(re.compile(r"/polls/[0-9a-f]{16}$"))
    link = desktop.locator("#link pre").inner_text()
    desktop.goto(link)
    desktop.get_by_role("button", name="Rank: Here").click()
    desktop.get_by_role("button", name="Send the ballot").click()
    expect(desktop.locator(".done")).to_contain_text("Your ballot is kept")
    desktop.goto(link)
    expect(desktop.locator(".done")).to_contain_text("You have voted")
    assert desktop.get_by_role("button", name="Send").count() == 0


def test_a_poll_shows_how_far_its_goal_is_and_closes_by_itself(desktop, chromium):
    desktop.goto(f"{desktop.host}/polls")
    desktop.get_by_label("Question").fill("Best?")
    desktop.get_by_label("Items, one in each line").fill("Good\nBad")
    desktop.get_by_label("A second answer").select_option("allow")
    desktop.get_by_label("Stop when").select_option("best")
    desktop.get_by_label("close the poll then").check()
    desktop.get_by_role("button", name="Make the poll").click()
    desktop.wait_for_url(re.compile(r"/polls/[0-9a-f]{16}$"))
    link = desktop.locator("#link pre").inner_text()
    voter = chromium.new_context().new_page()
    voter.goto(link)
    headers = {"x-csrf": voter.locator("meta[name=csrf]").get_attribute("content")}

    def vote(number):
        body = {"nonce": f"vote-number-{number:04d}", "first": 0, "second": 1, "answer": "a"}
        return voter.request.post(f"{link}/vote", data=body, headers=headers).status

    assert [vote(k) for k in range(4)] == [201] * 4
    bar = desktop.locator("#to-goal")
    expect(bar).to_have_attribute("value", "4")
    expect(desktop.get_by_label(re.compile(r"About \d+ more votes to the goal."))).to_be_visible()
    assert int(bar.get_attribute("max")) > 6
    shoot(desktop, "poll-goal")
    check_axe(desktop)
    later = [vote(k) for k in range(4, 20)]
    taken = later.index(409)
    assert later == [201] * taken + [409] * (16 - taken)
    expect(desktop.locator("#live")).to_contain_text("The goal is reached: the votes are enough.")
    expect(desktop.locator("#live")).to_contain_text(f"{4 + taken} answers from 1 voter. The poll is closed.")
    expect(bar).to_have_count(0)
    expect(desktop.get_by_role("button", name="Open it again")).to_be_visible()
    voter.goto(link)
    expect(voter.locator(".done")).to_contain_text("closed")
    voter.context.close()
