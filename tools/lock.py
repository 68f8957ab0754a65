"""Write requirements.lock: every package of a development environment, with version and SHA-256 of its files.

    python tools/lock.py            resolve pyproject.toml with the extras below, and write the file (requires uv)
    python tools/lock.py --check    exit 1 if the file lacks a package named in pyproject.toml, or names a location

The file is valid for every system and every Python version that pyproject.toml allows; ``make locked`` installs it.
The lock names no locations, since the package index is configured on each machine.  PyTorch is excluded because its
files depend on the machine's graphics card.
"""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements.lock"
EXTRAS = ("trees", "plot", "tracking", "serve", "test", "lint", "docs")
HEAD = "# written by tools/lock.py (make lock); install it with: make locked\n"


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def write() -> None:
    least = re.search(r"\d+\.\d+", project()["requires-python"])[0]
    words = [
        "pip",
        "compile",
        "pyproject.toml",
        "--universal",
        "--python-version",
        least,
        "--generate-hashes",
        "--quiet",
    ]
    words += ["--no-header", "--no-annotate", "--no-emit-index-url", "--no-emit-find-links"]
    words += [word for extra in EXTRAS for word in ("--extra", extra)]
    done = subprocess.run([sys.executable, "-m", "uv", *words], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit("the packages could not be resolved (pip install uv, if that is what is missing)")
    wrong = faults(done.stdout)
    if wrong:
        sys.exit(f"requirements.lock was left as it is: {wrong}")
    LOCK.write_text(HEAD + done.stdout)
    print(f"{LOCK.name}: {len(versions(done.stdout))} packages, {done.stdout.count('--hash=')} files")


def versions(text: str) -> dict[str, int]:
    """The packages of a lock file, with the number of files of each."""
    found: dict[str, int] = {}
    for block in re.split(r"\n(?=\S)", text):
        if "==" in block:
            name = plain(block.split("==")[0])
            found[name] = found.get(name, 0) + block.count("--hash=sha256:")
    return found


def faults(text: str) -> list[str]:
    """Faults of a lock file: missing packages, packages without a digest, names of locations."""
    about = project()
    wanted = [*about["dependencies"], *(one for extra in EXTRAS for one in about["optional-dependencies"][extra])]
    names = {plain(re.match(r"[A-Za-z0-9._-]+", one)[0]) for one in wanted}
    locked = versions(text)
    return [
        *(f"{name} is not in it" for name in sorted(names - set(locked))),
        *(f"{name} has no digest" for name, files in locked.items() if not files),
        *(f"a place is named: {line}" for line in text.splitlines() if re.search(r"://|^\s*-|@ ", line) and "--hash" not in line),
    ]  # fmt: skip


if __name__ == "__main__":
    if "--check" not in sys.argv:
        write()
    elif wrong := faults(LOCK.read_text()):
        sys.exit(f"{LOCK.name}: {'; '.join(wrong)}; run make lock")
