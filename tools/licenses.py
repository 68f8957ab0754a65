"""List the licenses of Placet's dependencies and extras: writes docs/licenses.md from the installed packages."""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

ROOT = Path(__file__).parents[1]


def license_of(name: str) -> str:
    """The license stated by a package: its license expression, its classifiers, or the first line of its license."""
    try:
        about = metadata(name)
    except PackageNotFoundError:
        return "(not installed here)"
    said = about.get("License-Expression")
    kinds = [line.split(" :: ")[-1] for line in about.get_all("Classifier") or [] if line.startswith("License ::")]
    first = (about.get("License") or "").strip().split("\n")[0]
    return said or ", ".join(kinds) or first[:60] or "(not said)"


def main() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = {"needed": project["dependencies"], **project["optional-dependencies"]}
    lines = [
        "# Licenses",
        "",
        "Placet is under the BSD 3-Clause license. What it imports is under these, as declared by each package:",
        "",
    ]
    lines += ["| package | for | license |", "|---|---|---|"]
    for group, wanted in groups.items():
        if group in ("test", "lint", "docs", "bench"):
            continue
        for one in wanted:
            name = re.match(r"[A-Za-z0-9._-]+", one)[0]
            lines.append(f"| {name} | {group} | {license_of(name)} |")
    lines += ["", "This page is written by `make licenses`.", ""]
    (ROOT / "docs" / "licenses.md").write_text("\n".join(lines))


if __name__ == "__main__":
    main()
