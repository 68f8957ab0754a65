#!/usr/bin/env bash
# try_wheel.sh ENVIRONMENT VOTES: what a stranger does with an installed Placet, in an empty folder outside the checkout.
set -euo pipefail
unset PYTHONPATH
env=$(cd "$1" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp "$2" "$folder/votes.csv"
cd "$folder"
"$env/bin/python" - "$env" <<'CHECK'
import importlib.metadata
import sys
from pathlib import Path

import placet

assert Path(placet.__file__).is_relative_to(sys.argv[1]), placet.__file__
about = importlib.metadata.metadata("placet")
assert about["Version"] == placet.__version__
assert about["License-Expression"] == "BSD-3-Clause"
assert about["Author"] == "Placet developers"
assert about.get_payload().startswith("# Placet")
assert (Path(placet.__file__).parent / "py.typed").is_file()
CHECK
"$env/bin/placet" demo --out demo > demo.txt
"$env/bin/placet" aggregate votes.csv --report page.html --quiet > board.tsv
grep -q "^ant" board.tsv
grep -q "ant" page.html
ls demo/*.html > /dev/null
echo "the wheel installs, and its demo runs outside the checkout"
