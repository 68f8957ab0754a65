"""Write requirements.lock: every package of a development set-up, by version and SHA-256 of its files.

    python tools/lock.py            resolve pyproject.toml with the extras below, and write the file
    python tools/lock.py --check    exit 1 where the file lacks a package that pyproject.toml names

Install with ``pip install --require-hashes -r requirements.lock`` (CPython 3.11 on Linux, x86-64).  Where the files
come from is a matter of each machine's own configuration; the lock names no place.
"""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements.lock"
EXTRAS = ("trees", "plot", "tracking", "test", "lint", "docs")


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def write() -> None:
    words = ["install", "--dry-run", "--ignore-installed", "--quiet", "--report", "-", f"{ROOT}[{','.join(EXTRAS)}]"]
    done = subprocess.run([sys.executable, "-m", "pip", *words], capture_output=True, text=True, check=True)
    lines = []
    for package in json.loads(done.stdout)["install"]:
        about = package["metadata"]
        if plain(about["name"]) == "placet":
            continue
        digest = package["download_info"]["archive_info"]["hashes"]["sha256"]
        lines.append(f"{plain(about['name'])}=={about['version']} --hash=sha256:{digest}")
    LOCK.write_text("# written by tools/lock.py\n" + "\n".join(sorted(lines)) + "\n")
    print(f"{LOCK.name}: {len(lines)} packages")


def missing() -> list[str]:
    """Packages that pyproject.toml names and the lock does not hold."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *(one for extra in EXTRAS for one in project["optional-dependencies"][extra])]
    names = {plain(re.match(r"[A-Za-z0-9._-]+", one)[0]) for one in wanted if not one.startswith("placet")}
    locked = {line.split("==")[0] for line in LOCK.read_text().splitlines() if "==" in line}
    return sorted(names - locked)


if __name__ == "__main__":
    if "--check" not in sys.argv:
        write()
    elif missing():
        sys.exit(f"requirements.lock lacks {missing()}; run python tools/lock.py")
