"""Ready to be released: metadata, the one setting of addresses, and the files of those who install and run Placet."""

import ast
import doctest
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

import placet

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
HOME = PROJECT["tool"]["hatch"]["metadata"]["hooks"]["custom"]["home"]


def test_versions_agree_and_nobody_is_invented():
    citation = (ROOT / "CITATION.cff").read_text()
    assert PROJECT["project"]["version"] == placet.__version__
    assert f"\nversion: {placet.__version__}\n" in citation
    assert PROJECT["project"]["description"] in citation
    assert PROJECT["project"]["authors"] == [{"name": "Placet developers"}]
    assert "- name: Placet developers" in citation


@pytest.mark.parametrize("name", ["README.md", "CITATION.cff", "Containerfile", "action.yml", "pyproject.toml"])
def test_addresses_are_those_of_the_setting(name):
    for address in re.findall(r"https?://[^\s)\"'<>]+", (ROOT / name).read_text()):
        assert address.startswith("http://localhost") or (HOME and address.startswith(HOME)), address


def test_urls_come_from_the_setting(monkeypatch):
    """The hook of the build, which hatchling calls in an environment of its own."""
    hook = SimpleNamespace(MetadataHookInterface=object)
    for name in ("hatchling", "hatchling.metadata", "hatchling.metadata.plugin"):
        monkeypatch.setitem(sys.modules, name, SimpleNamespace())
    monkeypatch.setitem(sys.modules, "hatchling.metadata.plugin.interface", hook)
    monkeypatch.syspath_prepend(str(ROOT))
    from hatch_build import Addresses

    for home, issues in (
        (HOME, f"{HOME}/issues"),
        ("https://example.org/x/", "https://example.org/x/issues"),
        ("", None),
    ):
        addresses, metadata = Addresses(), {}
        addresses.config = {"home": home}
        addresses.update(metadata)
        assert metadata["urls"].get("Issues") == (issues if home else None)
        assert bool(metadata["urls"]) == bool(home)


def test_the_readme_reads_without_its_neighbours():
    """On a page where links to other files lead nowhere: it has none, and no picture."""
    text = (ROOT / "README.md").read_text()
    assert all(target.startswith("http") for target in re.findall(r"\]\(([^)]+)\)", text))
    for path in re.findall(r"`((?:docs|experiments)/[\w./]*|[A-Z]\w+\.\w+|Containerfile|action\.yml)`", text):
        assert (ROOT / path).exists() or "_build" in path, path


def test_the_example_of_the_readme_is_the_one_that_is_checked_for_types():
    shown = doctest.DocTestParser().get_examples((ROOT / "README.md").read_text())
    lines = [ast.dump(line) for example in shown for line in ast.parse(example.source).body]
    checked = ast.parse((ROOT / "tests/typed_door.py").read_text())
    readme = next(one for one in checked.body if isinstance(one, ast.FunctionDef) and one.name == "readme")
    assert len(lines) == 6
    assert lines == [ast.dump(ast.parse("import placet").body[0]), *map(ast.dump, readme.body[1:6])]
    assert "tests/typed_door.py" in PROJECT["tool"]["mypy"]["files"]


def test_pip_install_by_name_stands_beside_the_way_that_works():
    for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        text = path.read_text()
        if re.search(r"pip install '?placet", text):
            assert re.search(r"pip install '?\.", text), path


def words_of(command):
    from typer.main import get_command

    from placet.cli import app

    found = get_command(app).commands[command]
    return {name for param in found.params for name in (*param.opts, *param.secondary_opts)}


def test_the_container_copies_what_is_there_and_serves_by_options_that_exist():
    text = (ROOT / "Containerfile").read_text()
    for line in re.findall(r"^COPY (?!--)(.+)$", text, re.MULTILINE):
        assert all((ROOT / name).exists() for name in line.split()[:-1]), line
    extras = re.search(r"\.whl\)\[(.+)\]", text)[1].split(",")
    assert set(extras) <= set(PROJECT["project"]["optional-dependencies"])
    command = re.findall(r'"([^"]+)"', text[text.index("\nCMD") :])
    assert command[0] == "serve"
    assert {word for word in command if word.startswith("--")} <= words_of("serve")


def test_the_action_turns_a_file_of_votes_into_a_page(tmp_path):
    """Its last step is run as it stands, with the variables that it is given."""
    yaml = pytest.importorskip("yaml")
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    *_, install, write = action["runs"]["steps"]
    assert install["run"].endswith('"$GITHUB_ACTION_PATH"')
    given = {"file": "docs/files/votes.csv", "page": str(tmp_path / "site/page.html"), "title": "Who leads?"}
    asked = {name: one.get("default", "") for name, one in action["inputs"].items()} | given
    such_as = re.search(r"such as (--.+)\.", action["inputs"]["options"]["description"])[1]
    asked["options"] = f"{such_as} --top 2 -q"
    env = {
        name: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda m: asked[m[1]], text) for name, text in write["env"].items()
    }
    place = {
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "PYTHONPATH": str(Path(placet.__file__).parents[1]),
    }
    done = subprocess.run(["bash", "-ec", write["run"]], env=env | place, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 3
    assert "<h1>Who leads?</h1>" in (tmp_path / "site/page.html").read_text()
