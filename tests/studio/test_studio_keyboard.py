"""The studio by keyboard alone, in a real browser: no mouse is used in any of these tests, only keys."""

import re
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("starlette")
from browser import needs_browser
from playwright.sync_api import expect
from test_studio_browser import check_axe, pages, shoot

from placet import io, simulate

pytestmark = needs_browser
NAMES = ["Ada", "Bob", "Cleo", "Dora", "Eve", "Finn"]
PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("keyboard")
    io.write(simulate.battles(np.linspace(1, -1, 6), 300, tie=-0.5, items=NAMES, random_state=1), path / "votes.csv")
    io.write(simulate.queries(6, 5, 3, random_state=0), path / "search.letor")
    rng = np.random.default_rng(0)
    rows = [rng.permutation(NAMES)[:2] for _ in range(60)]
    (path / "panel.csv").write_text(
        "left one,right one,who won,judge,date,length\n"
        + "".join(
            f"{a},{b},{min(a, b)},{'uvw'[k % 3]},2024-0{1 + k % 9}-05,{k % 7 - 3}\n" for k, (a, b) in enumerate(rows)
        )
    )
    (path / "beacons.csv").write_text("id,x,y\nnorth,0,60\neast,60,0\n")
    (path / "arrivals.csv").write_text("day,arrival_s\n0,40\n0,41\n1,42\n")
    (path / "pear.png").write_bytes(PICTURE)
    return path


@pytest.fixture(scope="module")
def url(folder):
    files = [folder / name for name in ("votes.csv", "search.letor", "arrivals.csv", "beacons.csv")]
    code = "from placet.cli import main; main()"
    asked = ["serve", "--no-browser", "--port", "0", "--workspace", str(folder / "w"), *map(str, files)]
    process = subprocess.Popen([sys.executable, "-c", code, *asked], stdout=subprocess.PIPE, text=True)
    yield process.stdout.readline().strip()
    process.terminate()
    process.communicate(timeout=60)


@pytest.fixture
def keys(chromium, url):
    yield from pages(chromium, url, "desktop")


@pytest.fixture
def phone(chromium, url):
    yield from pages(chromium, url, "phone")


def focused(page):
    """What the focused control is called, and its tag."""
    return page.evaluate(
        "(() => { const e = document.activeElement; const label = e.labels?.[0]?.textContent;"
        " return [e.getAttribute('aria-label') ?? label ?? e.textContent.trim(), e.tagName.toLowerCase()]; })()"
    )


def tab_to(page, name, most=60, key="Tab"):
    """Press Tab until the control of that name has the focus; how often it took."""
    for count in range(1, most + 1):
        page.keyboard.press(key)
        found = focused(page)[0]
        if found == name or (isinstance(name, re.Pattern) and name.search(found)):
            assert page.evaluate("document.activeElement.matches(':focus-visible')"), f"{found}: the focus is not seen"
            return count
    raise AssertionError(f"no Tab of {most} reaches {name!r}; the last was {focused(page)}")


def open_by_keys(page, *names):
    """From the start page, follow links by Tab and Enter."""
    page.goto(page.host)
    for name in names:
        expect(page.get_by_role("link", name=name, exact=True).first).to_be_visible()
        tab_to(page, name)
        page.keyboard.press("Enter")


def test_a_board(keys):
    """The ranking comes before the controls, and no redraw loses the focus."""
    open_by_keys(keys, "votes.csv", "Open the board")
    rows = keys.locator(".board tbody tr:not(.tier)")
    expect(rows).to_have_count(6)
    keys.evaluate("document.activeElement.blur()")
    keys.keyboard.press("Tab")
    assert focused(keys)[0] == "Skip to the content"
    keys.keyboard.press("Enter")
    assert tab_to(keys, "Ada") <= 14  # links back, the question, notes, tabs, search, tier, five heads
    keys.keyboard.press("Enter")
    assert focused(keys) == ["Ada", "button"]  # drawn anew, and focused still
    expect(keys.locator("#pair")).to_contain_text("Choose another item")
    tab_to(keys, "Bob")
    keys.keyboard.press("Space")
    expect(keys.locator("#pair")).to_contain_text("Ada is above Bob.")
    assert focused(keys)[0] == "Bob"
    tab_to(keys, "Close")
    keys.keyboard.press("Enter")
    expect(keys.locator("#pair")).to_be_hidden()
    assert focused(keys)[0] == "Ada"  # back where it was opened
    tab_to(keys, re.compile("^score"), key="Shift+Tab")
    keys.keyboard.press("Enter")
    expect(keys.locator("th[aria-sort=ascending]")).to_contain_text("score")
    keys.keyboard.press("Enter")
    expect(keys.locator("th[aria-sort=descending]")).to_contain_text("score")
    assert re.match("score", focused(keys)[0])
    tab_to(keys, "Search", key="Shift+Tab")
    keys.keyboard.type("do")
    expect(rows).to_have_count(1)
    assert focused(keys)[0] == "Search"
    keys.keyboard.press("ArrowLeft")
    keys.keyboard.type("x")
    assert "search=dxo" in keys.url  # the caret stays where it is, too
    shoot(keys, "keys-board")


def test_the_question_and_the_tabs(keys):
    open_by_keys(keys, "votes.csv", "Open the board")
    expect(keys.locator("#lead")).to_contain_text("Ada")
    keys.evaluate("document.activeElement.blur()")
    tab_to(keys, "Change the question")
    keys.keyboard.press("Enter")
    assert focused(keys)[0] == "Method"
    tab_to(keys, "ties")
    keys.keyboard.type("dav")
    expect(keys.locator("#same")).to_contain_text("ties=davidson")
    assert focused(keys)[0] == "ties"  # the controls were drawn anew
    expect(keys.locator("#same pre").first).to_contain_text("votes.csv")
    tab_to(keys, "Ranking", key="Shift+Tab")
    keys.keyboard.press("ArrowRight")
    expect(keys.get_by_role("tab", name="Chart")).to_have_attribute("aria-selected", "true")
    assert focused(keys)[0] == "Chart"
    keys.keyboard.press("ArrowRight")
    expect(keys.locator("#view .chart svg").first).to_be_visible()
    assert focused(keys)[0] == "Who beats whom"
    shoot(keys, "keys-wins")
    check_axe(keys)


def test_a_ballot_by_keys_alone(keys):
    keys.goto(f"{keys.host}/polls")
    tab_to(keys, "Question")
    keys.keyboard.type("Where shall we go?")
    tab_to(keys, "Items, one in each line")
    keys.keyboard.type("The lake\nThe hills\nA museum\nHome")
    tab_to(keys, "Asked")
    keys.keyboard.press("ArrowDown")
    tab_to(keys, "Make the poll")
    keys.keyboard.press("Enter")
    keys.wait_for_url(re.compile(r"/polls/[0-9a-f]{16}$"))
    keys.goto(keys.locator("#link pre").inner_text())
    places = lambda: [box.locator(".face").all_inner_texts() for box in keys.locator(".tier-box").all()]  # noqa: E731
    tab_to(keys, re.compile("^Rank: "))
    ranked = [focused(keys)[0].removeprefix("Rank: ")]
    for _ in range(3):
        keys.keyboard.press("Enter")
        ranked.append(focused(keys)[0].removeprefix("Rank: "))
    assert len(set(ranked)) == 4  # each Enter ranks one and goes to the next
    keys.keyboard.press("Enter")
    assert places() == [[name] for name in ranked]
    assert focused(keys)[0] == "Send the ballot"
    tab_to(keys, f"Up: {ranked[3]}", key="Shift+Tab")
    keys.keyboard.press("ArrowUp")
    assert places() == [[ranked[k]] for k in (0, 1, 3, 2)]
    assert ranked[3] in focused(keys)[0]
    keys.keyboard.press("1")
    assert places() == [[ranked[k]] for k in (3, 0, 1, 2)]
    keys.keyboard.press("ArrowDown")
    keys.keyboard.press("t")
    assert places() == [[ranked[0], ranked[3]], [ranked[1]], [ranked[2]]]
    assert ranked[3] in focused(keys)[0]
    keys.keyboard.press("t")
    assert places() == [[ranked[k]] for k in (0, 3, 1, 2)]
    keys.keyboard.press("Delete")
    assert places() == [[ranked[k]] for k in (0, 1, 2)]
    assert focused(keys)[0] == f"Rank: {ranked[3]}"
    shoot(keys, "keys-ballot")
    check_axe(keys)
    tab_to(keys, "Send the ballot")
    keys.keyboard.press("Enter")
    expect(keys.locator(".done")).to_contain_text("Your ballot is kept")


def test_odd_columns_are_assigned_by_one_key_each(keys, folder):
    """A file is chosen by the file dialog, which no page sees; then Tab and Enter alone."""
    keys.set_input_files("#files", folder / "panel.csv")
    keys.wait_for_url("**/data/*")
    expect(keys.locator("#understood")).to_contain_text(
        "These look like votes: left one against right one, and who won"
    )
    shoot(keys, "keys-odd")
    check_axe(keys)
    tab_to(keys, "Read them as votes")
    keys.keyboard.press("Enter")
    expect(keys.locator("#understood .lead")).to_contain_text("votes")
    offers = {"Use judge as who voted": "agent", "Use date as the time": "time", "Use length as a control": "control"}
    for name in offers:
        expect(keys.get_by_role("button", name=name)).to_be_visible()
        keys.evaluate("document.activeElement.blur()")
        tab_to(keys, name)
        keys.keyboard.press("Enter")
        expect(keys.get_by_role("button", name=name)).to_have_count(0)
    expect(keys.get_by_label("What length is")).to_have_value("control")
    expect(keys.get_by_label("What date is")).to_have_value("time")
    shoot(keys, "keys-roles")
    tab_to(keys, "Open the board", most=80)
    keys.keyboard.press("Enter")
    expect(keys.locator("#lead")).to_contain_text("60 votes")
    expect(keys.locator("#same pre").first).to_contain_text("placet aggregate panel.csv")  # the name of the upload


def test_images_of_a_poll_are_taken_back(keys, folder):
    keys.goto(f"{keys.host}/polls")
    keys.set_input_files("#images", folder / "pear.png")
    expect(keys.locator("#image-list li")).to_have_count(1)
    assert len(list((folder / "w" / "images").iterdir())) == 1
    tab_to(keys, "Take back pear.png")
    with keys.expect_response("**/api/images/*") as answered:
        keys.keyboard.press("Enter")
    assert answered.value.status == 200
    assert not list((folder / "w" / "images").iterdir())
    expect(keys.locator("#image-list li")).to_have_count(0)
    assert focused(keys)[0] == "Add images"


def test_a_phone_folds_the_controls(phone):
    phone.goto(phone.host)
    link = phone.get_by_role("link", name="votes.csv", exact=True).get_attribute("href")
    phone.goto(phone.host + link.replace("/data/", "/board/"))
    expect(phone.locator(".board tbody tr:not(.tier)")).to_have_count(6)
    assert phone.locator("#question").get_attribute("open") is None
    assert phone.locator(".board").bounding_box()["y"] < 800  # the ranking begins on the first screen
    check_axe(phone)
    shoot(phone, "keys-folded")
    tab_to(phone, "Change the question")
    phone.keyboard.press("Enter")
    expect(phone.get_by_label("Method")).to_be_visible()
    check_axe(phone)


def test_pages_list_what_they_can_use(keys):
    keys.goto(f"{keys.host}/rankers")
    assert keys.locator(".cards a").all_inner_texts() == ["search.letor"]
    keys.goto(f"{keys.host}/tracks")
    assert keys.locator("#arrivals option").all_inner_texts() == ["arrivals.csv"]
    assert keys.locator("#beacons option").all_inner_texts() == ["beacons.csv"]


def test_reasons_that_many_methods_share_are_said_once(keys):
    open_by_keys(keys, "votes.csv", "Compare methods")
    expect(keys.locator("#left-out dd").first).to_be_visible(timeout=120_000)
    reasons = keys.locator("#left-out dd").all_inner_texts()
    assert len(reasons) == len(set(reasons))
    assert len(reasons) < len(", ".join(keys.locator("#left-out dt").all_inner_texts()).split(", ")) / 2
