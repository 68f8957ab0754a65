"""Print the oldest supported version of every dependency in pyproject.toml, one ``name==version`` per line."""

import re
import tomllib
from pathlib import Path

EXTRAS = ("trees",)


def main() -> None:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *(one for extra in EXTRAS for one in project["optional-dependencies"][extra])]
    for one in wanted:
        name, version = re.fullmatch(r"([A-Za-z0-9._-]+)>=([\d.]+)", one).groups()
        print(f"{name}=={version}")


if __name__ == "__main__":
    main()
