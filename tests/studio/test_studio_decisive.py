"""Two views in a real browser: "How few votes decide it", and datasets or a column as sources of one fit."""

import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("starlette")
from browser import needs_browser
from playwright.sync_api import expect
from test_studio_browser import SIZES, check_axe, pages, shoot

from placet import io, simulate

pytestmark = needs_browser
NAMES = ["Ada", "Bob", "Cleo", "Dora", "Eve"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("decisive")


@pytest.fixture(scope="module")
def url(folder):
    for seed, name in enumerate(("people", "judge")):
        votes = simulate.battles(np.linspace(1.5, -1.5, 5), 200, items=NAMES, random_state=seed)
        io.write(votes, folder / f"{name}.csv")
    asked = ["serve", "--no-browser", "--port", "0", "--workspace", str(folder / "w")]
    command = [sys.executable, "-c", "from placet.cli import main; main()", *asked]
    process = subprocess.Popen(
        [*command, str(folder / "people.csv"), str(folder / "judge.csv")], stdout=subprocess.PIPE, text=True
    )
    yield process.stdout.readline().strip()
    process.terminate()
    process.communicate(timeout=60)


@pytest.fixture
def desktop(chromium, url):
    yield from pages(chromium, url, "desktop")


def test_how_few_votes_decide_it(desktop):
    page = desktop
    page.locator(".card", has_text="people.csv").get_by_role("link", name="Board").click()
    page.wait_for_url("**/board/*")
    expect(page.locator("#lead")).to_contain_text("Ada")
    page.get_by_role("tab", name="How few votes decide it").click()
    view = page.locator("#view")
    expect(view.locator("li")).to_have_count(3)
    for item, place in zip(view.locator("li").all(), ("first", "second", "third")):
        expect(item).to_contain_text(f"of 200 votes decide the {place} place.")
    first = view.locator("li").first
    expect(first.locator("table")).to_be_hidden()
    first.get_by_text("They are these").click()
    expect(first.locator("th", has_text="outcome")).to_be_visible()
    expect(first.locator("tbody tr").first).to_contain_text("Ada")
    shoot(page, "decisive")
    check_axe(page)


def test_several_datasets_are_sources(desktop, folder):
    page = desktop
    button = page.get_by_role("button", name="Fit the chosen as sources")
    expect(button).to_be_disabled()
    for box in page.locator("input[type=checkbox]").all()[:2]:
        box.check()
    button.click()
    page.wait_for_url("**/sources?**")
    expect(page.locator("#lead")).to_have_text(
        "Ada, Bob, Cleo, Dora and Eve: 2 sources do not tell which of them is best."
    )
    expect(page.locator("#ranking tbody tr")).to_have_count(5)
    expect(page.locator("#each tbody")).to_contain_text("200 votes")
    page.locator("#target").select_option(label="people.csv")
    expect(page.locator("#lead")).to_contain_text("among 5 items for people")
    expect(page.locator("#ranking tbody tr").last.locator("td").nth(1)).to_have_text("5")  # one rank, not a range
    expect(page.locator("#same")).to_contain_text("--target")
    shoot(page, "sources")
    check_axe(page)
    page.size = "phone"
    page.set_viewport_size(SIZES["phone"])
    page.emulate_media(color_scheme="dark")
    shoot(page, "sources")
    check_axe(page)
    with (folder / "judge.csv").open("a") as file:
        file.write("Eve,Ada,a,10\n")
    page.get_by_role("button", name="Show the new one").click()
    expect(page.locator("#each tbody")).to_contain_text("210 votes")


def test_a_column_of_judges_becomes_sources_by_a_click(desktop, tmp_path):
    page = desktop
    file = tmp_path / "judged votes.csv"
    rows = [
        "Ada,Bob,a,gpt",
        "Bob,Cleo,a,gpt",
        "Ada,Cleo,a,gpt",
        "Cleo,Ada,a,people",
        "Cleo,Bob,a,people",
        "Bob,Ada,a,people",
    ]
    text = "\n".join(["a,b,winner,judge", *(row for row in rows for _ in range(9))]) + "\n"
    file.write_text(text)
    page.set_input_files("#files", file)
    page.wait_for_url("**/data/*")
    expect(page.get_by_role("button", name="Use judge as who voted")).to_be_visible()
    expect(page.get_by_label("What judge is").locator("option[value=source]")).to_have_count(1)
    page.get_by_role("button", name="Use judge as sources of one fit").click()
    page.wait_for_url("**/sources?**")
    expect(page.locator("#lead")).to_contain_text("2 sources do not tell which of them is best")
    expect(page.locator("#each tbody")).to_contain_text("27 votes")
    for target, first in (("gpt", "Ada"), ("people", "Cleo")):
        page.locator("#target").select_option(target)
        expect(page.locator("#lead")).to_contain_text(f"for {target}")
        expect(page.locator("#ranking tbody tr").first).to_contain_text(first)
        command = f"placet aggregate 'judged votes.csv' --source judge --target {target}"
        expect(page.locator("#same pre").first).to_have_text(command)
    shoot(page, "sources-of-a-column")
    check_axe(page)
    page.reload()
    expect(page.locator("#lead")).to_contain_text("for people")
    expect(page.locator("#target")).to_have_value("people")
    page.go_back()
    expect(page.locator("#lead")).to_contain_text("for gpt")
