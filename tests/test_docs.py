"""The documentation: links lead somewhere, pages start from files that are there, and every entry of a table is described."""

import doctest
import json
import math
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from numpy.typing import ArrayLike, DTypeLike, NDArray

import placet
from placet.aggregate import MODELS, RULES
from placet.io.formats import FORMATS
from placet.losses import LOSSES
from placet.metrics import METRICS
from placet.rank import RANKERS

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if "_build" not in path.parts)
HOWTOS = sorted(path for path in (DOCS / "howto").glob("*.md") if path.name != "index.md")
FILES = {path.name for path in (DOCS / "files").iterdir()}
NO_DATA = {
    "deploying.md",
    "real_data.md",
    "coming_from.md",
    "studio.md",
}  # how to install, public data, other libraries, a browser
ONE_DOOR = {"torch.md", "scikit-learn.md"}  # Python alone
PICTURES = {
    "leaderboard", "style_control", "raters", "ratings_over_time", "score_tables",
    "audit", "election", "voters", "comparing", "clicks", "search", "ratings", "tracking",
}  # fmt: skip


def name(path):
    return path.relative_to(DOCS).as_posix()


def anchors(text):
    """What the headings of a page are linked by."""
    heads = re.findall(
        r"^#{1,3} (.+)$", re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE), re.MULTILINE
    )
    plain = [re.sub(r"[`*$\\]", "", head).lower() for head in heads]
    return {re.sub(r"[^\w\- ]", "", head).strip().replace(" ", "-") for head in plain}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page):
    text = re.sub(r"^```python.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"https?:|mailto:", target):
            continue
        path, _, anchor = target.partition("#")
        found = (page.parent / path) if path else page
        assert found.exists(), f"{name(page)}: {target}"
        assert not anchor or anchor in anchors(found.read_text()), f"{name(page)}: {target}"
    for target in re.findall(r"\{doc\}`(?:[^`<]*<)?([^`>]+)>?`", text):
        found = DOCS / target.lstrip("/") if target.startswith("/") else page.parent / target
        assert found.with_suffix(".md").exists(), f"{name(page)}: {{doc}} {target}"
    for target in re.findall(r"\{download\}`[^`<]*<([^`>]+)>`|\{literalinclude\} (\S+)", text):
        assert (page.parent / (target[0] or target[1])).is_file(), f"{name(page)}: {target}"


@pytest.mark.parametrize("page", HOWTOS, ids=name)
def test_a_how_to_starts_from_a_file_that_is_shown_and_read(page):
    """The first thing that Python does is to read a file of docs/files, which the page shows and offers before."""
    if page.name in NO_DATA:
        return
    text = page.read_text()
    examples = doctest.DocTestParser().get_examples(text)
    first = next(one for one in examples if not re.match(r"(import|from) ", one.source))
    called = re.search(r'\b(read\w*|scan|choice)\("([\w*.-]+)"', first.source)
    assert called, f"{page.name} starts with {first.source}"
    files = [path.name for path in (DOCS / "files").glob(called[2])]
    assert files, f"{page.name} reads {called[2]}"
    before = "\n".join(text.splitlines()[: first.lineno])
    assert all(f"<../files/{file}>`" in before for file in files), f"{page.name} does not offer {files}"
    assert any(f"{{literalinclude}} ../files/{file}" in before for file in files), f"{page.name} does not show {files}"


@pytest.mark.parametrize("page", HOWTOS, ids=name)
def test_files_that_an_example_reads_are_there(page):
    text = "\n".join(line for line in page.read_text().splitlines() if line.startswith((">>> ", "... ")))
    for file in re.findall(r'(?:read\w*|open|scan|choice)\("([\w.-]+\.(?:csv|ballots|letor|run|txt|soc|prefs))"', text):
        assert file in FILES, f"{page.name} reads {file}"


@pytest.mark.parametrize("page", HOWTOS, ids=name)
def test_command_and_python_stand_side_by_side(page):
    if page.name in NO_DATA | ONE_DOOR:
        return
    tabs = re.findall(r"^:::\{tab\} (\w+)\n```(\w+)$", page.read_text(), re.MULTILINE)
    assert tabs[:2] == [("Command", "console"), ("Python", "python")]
    assert tabs == tabs[:2] * (len(tabs) // 2)


@pytest.mark.parametrize("page", [*HOWTOS, DOCS / "getting_started.md"], ids=name)
def test_examples_show_numbers_not_truth(page):
    shown = [one.want.strip() for one in doctest.DocTestParser().get_examples(page.read_text())]
    assert not {"True", "False", "np.True_", "np.False_"} & set(shown)


@pytest.mark.parametrize("page", sorted(PICTURES))
def test_pages_where_one_would_rather_look_have_a_picture_by_day_and_by_night(page):
    assert f"](../pictures/{page}.svg)" in (DOCS / "howto" / f"{page}.md").read_text()
    light, dark = ((DOCS / "pictures" / f"{page}{form}.svg").read_text() for form in ("", "-dark"))
    assert light != dark
    assert re.sub(r"<style>.*?</style>", "", light) == re.sub(r"<style>.*?</style>", "", dark)


@pytest.fixture(scope="module")
def printed():
    """What every command prints that the documentation shows: one process runs them all."""
    if sys.platform == "win32":
        pytest.skip("there are no pseudo-terminals")
    found = runpy.run_path(str(DOCS.parent / "tools" / "shown_commands.py"))
    shown = {path: list(found["shown_commands"](path.read_text())) for path in found["PAGES"]}
    if find_spec("torch") is None:
        shown.pop(DOCS / "howto" / "labels.md")
    answers = found["run"]([[one.command for one in page] for page in shown.values()])
    return {path: list(zip(commands, page)) for (path, commands), page in zip(shown.items(), answers)}


@pytest.mark.parametrize(
    "page", [DOCS.parent / "README.md", *PAGES], ids=lambda path: path.relative_to(DOCS.parent).as_posix()
)
def test_commands_print_what_is_shown(page, printed):
    """Every command of a console block runs; what stands below it is what it prints at a terminal of 80 columns."""
    for one, answer in printed.get(page, ()):
        assert answer.code == 0, (one.command, answer.notes)
        assert not one.output or one.is_printed_by(answer.output), (one.command, answer.output)


def test_numbers_in_the_words_of_getting_started_are_those_of_its_files():
    """Blocks are run; these stand in sentences."""
    files = DOCS / "files"
    votes, ballots, rows = (placet.read(files / name) for name in ("votes.csv", "club.ballots", "search.letor"))
    decided = votes.wins_i.sum() + votes.wins_j.sum()
    counted = {
        f"{decided + votes.ties.sum():.0f} votes on {['no', 'one', 'two', 'three', 'four', 'five'][len(votes.items)]}",
        f"{['', 'ten', 'twenty'][int(ballots.weight.sum()) // 10]} of them on three lines",
        f"{len(rows.grade):,} of them",
        f"{1 / (1 + math.exp(-1)):.0%} of",
    }
    assert len((files / "club.ballots").read_text().splitlines()) == 3
    text = (DOCS / "getting_started.md").read_text()
    assert {words for words in counted if words not in text} == set()


def test_the_first_pages_show_commands(printed):
    for page in (DOCS.parent / "README.md", DOCS / "getting_started.md", DOCS / "howto" / "leaderboard.md"):
        assert any(one.output for one, _ in printed[page]), page


def test_the_files_are_those_that_their_tool_writes(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS.parent / "tools"))
    sys.modules.pop("example_files", None)
    import example_files

    example_files.main(tmp_path)
    for path in sorted(tmp_path.iterdir()):
        assert path.read_bytes() == (DOCS / "files" / path.name).read_bytes(), path.name
    assert {path.name for path in tmp_path.iterdir()} == FILES


def test_the_notebook_shows_what_its_cells_give(monkeypatch):
    """Run anew, every cell gives the text that is shown; pictures of boards may differ in their last digits."""
    monkeypatch.syspath_prepend(str(DOCS.parent / "tools"))
    import first_hour

    plain = lambda book: [  # noqa: E731
        (cell["source"], [output["data"]["text/plain"] for output in cell.get("outputs", ())]) for cell in book["cells"]
    ]
    assert plain(first_hour.notebook()) == plain(json.loads(first_hour.NOTEBOOK.read_text()))


@pytest.fixture
def reference(monkeypatch):
    for needed in ("sphinx", "docutils"):
        if find_spec(needed) is None:
            pytest.skip("Sphinx is not installed")
    monkeypatch.syspath_prepend(str(DOCS))
    import reference

    return reference


def test_every_entry_of_the_tables_has_a_reference_with_its_parameters(reference):
    expected = {
        "models": MODELS,
        "rules": RULES,
        "losses": LOSSES,
        "metrics": METRICS,
        "rankers": RANKERS,
        "formats": FORMATS,
    }
    for kind, table in expected.items():
        found = dict(reference.REFERENCES[kind]())
        assert list(found) == list(table)
        assert all(any(line.strip() for line in lines) for lines in found.values())
    text = "\n".join(dict(reference.models())["bradley-terry"])
    assert "- **order\\_effect** (bool, default `False`): A constant is added" in text
    assert "- **max\\_iter** (`int`, default `200`): Newton's method stops" in text
    assert "- **l2** (float, default `0.0001`): " in "\n".join(dict(reference.rankers())["linear"])
    assert set(reference.REFERENCES) == {path.stem for path in (DOCS / "reference").glob("*.md")} - {"index"}


def test_every_parameter_has_a_text(reference):
    empty = [
        f"{kind} {head}: {line}"
        for kind, entries in reference.REFERENCES.items()
        for head, lines in entries()
        for line in lines
        if line.startswith("- **") and not re.search(r"(?:\*\*|\)): \S", line)
    ]
    assert not empty, empty


def test_types_and_texts_are_apart():
    sys.path.insert(0, str(DOCS))
    try:
        import docstrings
    finally:
        sys.path.pop(0)
    text = 'ties : str, default "none"\n    A tie counts half.\nmax_iter, tol\n    When to stop.\nk : places that count\nrest\n'
    told, rest = docstrings.described_parameters(text)
    assert told["ties"] == ('str, default "none"', "A tie counts half.")
    assert told["max_iter"] == told["tol"] == ("", "When to stop.")
    assert told["k"] == ("", "places that count")
    assert rest == "rest"
    lines = docstrings.entry(placet.audit)
    assert any(line.startswith("Returns: *Audit, AuditSet or MethodAudit*. Which axioms hold") for line in lines)
    assert sum(line == "```python" for line in lines) == 1


def test_docstrings_of_the_api_are_lists_and_have_no_headings_of_pages(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    from api_text import restructured

    doc = (
        "Fit 1 / (1 + e^-d).\n\nParameters\n----------\nties : str\n    A tie\n    counts half.\nmax_iter, tol\n"
        "    When to `stop`.\n\nReturns\n-------\narray\n    One\n    each.\n\n>>> f(1)\n1 * 2\n"
    )
    assert [line for line in restructured(doc) if line] == [
        r"Fit \ :math:`1 / (1 + e^{-d})`\ .",
        "**Parameters**",
        "- **ties** (str): A tie counts half.",
        "- **max_iter**, **tol**: When to ``stop``.",
        "**Returns** array: One each.",
        ">>> f(1)",
        "1 * 2",
    ]


def test_every_command_and_option_is_in_the_reference(reference):
    found = {head: "\n".join(lines) for head, lines in reference.commands()}
    for command in (
        "aggregate",
        "audit",
        "describe",
        "convert",
        "train",
        "score",
        "evaluate",
        "diff",
        "fragility",
        "verify",
        "serve",
        "track",
    ):
        assert f"placet {command}" in found
    for option in (
        "`--method`, `-m`",
        "`--title`",
        "`--report`",
        "`--on-error` (raise or skip",
        "`--seed` (whole number, default `0`)",
    ):
        assert option in found["placet aggregate"] or option == "`--seed` (whole number, default `0`)"
    assert "placet simulate battles" in found


def test_types_are_readable(reference):
    import docstrings

    for kind in reference.REFERENCES.values():
        for head, lines in kind():
            for line in lines:
                assert "numpy._typing" not in line, (head, line[:200])
    assert docstrings.type_text(float | None) == "float | None"
    assert docstrings.type_text(ArrayLike | None) == "array | None"
    assert docstrings.type_text(str | ArrayLike) == "array | str"
    assert docstrings.type_text(str | Callable[[NDArray[Any]], ArrayLike] | None) == "str | function | None"
    assert docstrings.type_text(DTypeLike) == "dtype"


def test_every_class_has_a_page_of_its_own():
    listed = set(re.findall(r"^   (placet\.[\w.]+)$", (DOCS / "api.md").read_text(), re.MULTILINE))
    classes = {f"placet.{name}" for name in placet.__all__ if isinstance(getattr(placet, name), type)}
    rankers = {f"placet.rank.{RANKERS[name].__name__}" for name in RANKERS}
    models = {f"placet.aggregate.{MODELS[name].__name__}" for name in MODELS}
    assert classes - {"placet.LinearRanker", "placet.TreeRanker"} | rankers | models <= listed


def test_what_a_reader_copies_is_what_was_typed():
    """The script of the copy buttons, run by Node where there is one."""
    if shutil.which("node") is None:
        pytest.skip("Node is not installed")
    script = (DOCS / "_static/copy.js").read_text().partition("document.")[0]
    asked = [">>> x = [\n...     1]\n>>> x\n[1]\n", "$ placet demo\nwritten\n", "a,b\nc,d\n"]
    run = f"{script}\nconsole.log(JSON.stringify({json.dumps(asked)}.map(typed)))"
    done = subprocess.run(["node", "-e", run], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == ["x = [\n    1]\nx\n", "placet demo\n", "a,b\nc,d\n"]


def test_formulas_become_mathml_without_a_network():
    if find_spec("latex2mathml") is None:
        pytest.skip("latex2mathml is not installed")
    sys.path.insert(0, str(DOCS))
    try:
        from mathml import mathml
    finally:
        sys.path.pop(0)
    for page in PAGES:
        text = re.sub(r"^```.*?^```$|`[^`\n]+`", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
        for block, inline in re.findall(r"\$\$(.+?)\$\$|(?<![\\$\w])\$([^$\n]+)\$", text, re.DOTALL):
            found = mathml(block or inline, "block" if block else "inline")
            assert found.startswith("<math"), (name(page), block or inline)
            assert "\\" not in found, (name(page), block or inline)  # a command that is not known
    assert "mathjax" not in (DOCS / "conf.py").read_text()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "i beats j with probability 1 / (1 + e^-d), d = theta_i - theta_j.",
            [r"1 / (1 + e^{-d}), d = \theta_{i} - \theta_{j}"],
        ),
        ("sum_{i<=k} g(r_i) d(i), over k rows", [r"\sum_{i \le k} g (r_{i}) d (i)"]),
        ("C = (2^|R| - 1) / |R|; the rest", [r"C = (2^{|R|} - 1) / | R |"]),
        ("C_k = (2^N_k - 1) / N_k", [r"C_{k} = (2^{N_{k}} - 1) / N_{k}"]),
        ("alpha = -<g, h> / |h|^2", [r"\alpha = - \langle g, h \rangle / | h |^{2}"]),
        ("O(n^3) for a forest; n_trees of them, theta_ and max_iter - as always", ["O (n^{3})"]),
        ("a sum over ballots of 1 / (k + place), and A or B - or both", []),
    ],
)
def test_formulas_of_docstrings_are_found_by_their_shape(text, found, monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    import formulas

    pieces = list(formulas.parts(text))
    assert "".join(piece for _, piece in pieces) == text
    assert [formulas.latex(piece) for is_formula, piece in pieces if is_formula] == found


def test_every_formula_of_the_reference_becomes_mathml(reference):
    if find_spec("latex2mathml") is None:
        pytest.skip("latex2mathml is not installed")
    from mathml import mathml

    found = [
        formula
        for entries in reference.REFERENCES.values()
        for _, lines in entries()
        for formula in re.findall(r"(?<!\\)\$([^$]+)(?<!\\)\$", "\n".join(lines))
    ]
    assert len(found) > 100
    for formula in found:
        made = mathml(formula, "inline")
        assert made.startswith("<math")
        assert "\\" not in made, formula
    assert r"$1 / (1 + e^{-d}), d = \theta_{i} - \theta_{j}$" in "\n".join(dict(reference.models())["bradley-terry"])


def test_the_start_page_leads_to_every_how_to():
    text = (DOCS / "index.md").read_text()
    led = set(re.findall(r"\{doc\}`howto/([\w-]+)`", text))
    missing = {path.stem for path in HOWTOS} - led - {"real_data", "torch"}
    assert not missing, missing
    assert "pip install" in text
    assert placet.__version__
