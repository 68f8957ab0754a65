"""Experiments are checks: they fail when a quantity or a method is missing, when nothing is compared, and on a miss."""

import argparse
import ast
import csv
import math
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from experiments import common, mutants
from experiments.breaks import BREAKS
from experiments.breaks.mutant import Mutant, find
from experiments.common import (
    LAYOUT,
    ROOT,
    check,
    check_first,
    check_sets,
    data_folder,
    expected,
    letor_folds,
    letor_parts,
    need,
    need_data,
    paired,
    read_expected,
    rotation,
    simulated_parts,
    skip,
)
from experiments.kept_cells import KeptCells, run_cells

FOLDER = ROOT / "experiments"
SCRIPTS = sorted(path for path in FOLDER.glob("*/*.py") if "__main__" in path.read_text())
EXPECTED = sorted(FOLDER.glob("*/expected_*.csv"))
ROWS = [
    ("A, ours, ndcg@5", "0.50", "0.45", "0.55", "paper +- 0.05: four standard errors"),
    ("A, peer, ndcg@5", "0.40", "0.35", "", "half of the paper's lead"),
    ("A, noise", "", "", "", "none: printed for the reader"),
]
GOOD = {"A, ours, ndcg@5": 0.5, "A, peer, ndcg@5": 0.41, "A, noise": 3.0}


def write(folder: Path, rows, header=LAYOUT, name="expected_table1.csv") -> Path:
    path = folder / name
    with open(path, "w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])
    return path


def verdict(ours, path, sets=None) -> int:
    try:
        check(ours, path, sets)
    except SystemExit as end:
        return end.code
    return 0


def test_a_run_inside_its_bounds_passes_and_is_written(tmp_path, capsys):
    assert verdict(GOOD, write(tmp_path, ROWS)) == 0
    with open(tmp_path / "table1" / "ours.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["verdict"] for row in rows] == ["ok", "ok", ""]
    assert [float(row["ours"]) for row in rows] == list(GOOD.values())
    assert "2 of 3 quantities have bounds, 0 missed" in capsys.readouterr().out


@pytest.mark.parametrize("value", [0.4499, 0.5501, math.nan, math.inf])
def test_a_value_outside_of_its_bounds_fails(tmp_path, value, capsys):
    assert verdict(GOOD | {"A, ours, ndcg@5": value}, write(tmp_path, ROWS)) == 1
    assert "MISS: A, ours, ndcg@5" in capsys.readouterr().out


def test_a_value_on_its_bound_passes(tmp_path):
    assert verdict(GOOD | {"A, ours, ndcg@5": 0.45}, write(tmp_path, ROWS)) == 0


@pytest.mark.parametrize("gone", GOOD)
def test_a_missing_quantity_fails_bounded_or_not(tmp_path, gone, capsys):
    assert verdict({k: v for k, v in GOOD.items() if k != gone}, write(tmp_path, ROWS)) == 1
    assert f"MISSING: {gone}" in capsys.readouterr().out


def test_a_vanished_method_fails(tmp_path):
    methods = [(f"A, {m}, ndcg@{k}", "", "0", "1", "a share") for m in ("ours", "peer") for k in (1, 5, 10)]
    path = write(tmp_path, methods)
    ours = {row[0]: 0.5 for row in methods}
    assert verdict(ours, path) == 0
    assert verdict({k: v for k, v in ours.items() if ", peer, " not in k}, path) == 1


def test_a_quantity_that_nobody_bounds_fails(tmp_path, capsys):
    assert verdict(GOOD | {"A, a new method, ndcg@5": 0.9}, write(tmp_path, ROWS)) == 1
    assert "UNKNOWN: A, a new method, ndcg@5" in capsys.readouterr().out


def test_nothing_compared_fails(tmp_path):
    path = write(tmp_path, ROWS)
    assert verdict({}, path) == 1
    assert verdict(GOOD, path, sets=["B"]) == 1
    assert verdict({}, path, sets=["B"]) == 1
    with pytest.raises(ValueError, match="none of 1 rows has a bound"):
        check({"A, noise": 3.0}, write(tmp_path, ROWS[2:]))


def test_only_the_sets_that_were_run_are_expected(tmp_path):
    path = write(tmp_path, [*ROWS, ("B, ours, ndcg@5", "", "0.2", "0.3", "an earlier run")])
    assert verdict(GOOD, path) == 1
    assert verdict(GOOD, path, sets=["A"]) == 0
    assert verdict(GOOD | {"B, ours, ndcg@5": 0.25}, path, sets=["A", "B"]) == 0


def test_sets_of_ones_own_are_computed_and_said_to_go_unchecked(tmp_path, capsys):
    path = write(tmp_path, ROWS)
    with pytest.raises(SystemExit) as end:
        check_sets({"TD2003, ours, ndcg@5": 0.3}, path, ["TD2003"])
    assert end.value.code == 0
    assert "SKIPPED, nothing was checked: expected_table1.csv has no bounds for TD2003" in capsys.readouterr().out
    check_sets(GOOD | {"TD2003, ours, ndcg@5": 0.3}, path, ["A", "TD2003"])
    assert "TD2003: no bounds" in capsys.readouterr().out
    with pytest.raises(SystemExit) as end:
        check_sets(GOOD | {"A, ours, ndcg@5": 0.1, "TD2003, ours, ndcg@5": 0.3}, path, ["A", "TD2003"])
    assert end.value.code == 1


def test_relations_beside_a_set_are_read(tmp_path):
    for k in range(1, 6):
        rows = [f"{d % 2} qid:{k} 1:{d} #docid = d{k}{d}" for d in range(3)]
        (tmp_path / f"S{k}.txt").write_text("\n".join(rows) + "\n")
    (tmp_path / "links.txt").write_text("".join(f"d{k}0 d{k}1\n" for k in range(1, 6)))
    train, valid, test = next(letor_folds(letor_parts(str(tmp_path)), 1))
    assert [part.relations["links"].nnz for part in (train, valid, test)] == [3, 1, 1]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([("a", "", "0", "1", "")], "the source of its bound"),
        ([("", "", "0", "1", "paper")], "with a quantity"),
        ([("a", "", "0", "1")], "five columns"),
        ([("a", "", "2", "1", "paper")], "low must not be above high"),
        ([("a", "", "nan", "1", "paper")], "low must not be above high"),
        ([("a", "", "", "", "paper")], "'none: why'"),
        ([("a", "", "0", "1", "none: why not")], "'none: why'"),
        ([("a", "", "0", "1", "paper"), ("a", "", "0", "2", "paper")], "stands twice"),
        ([("a", "", "low", "1", "paper")], "could not convert"),
        ([], "nothing would be compared"),
    ],
)
def test_an_expected_file_of_another_layout_is_refused(tmp_path, rows, words):
    with pytest.raises(ValueError, match=words):
        read_expected(write(tmp_path, rows))


def test_another_header_is_refused(tmp_path):
    with pytest.raises(ValueError, match="the header is"):
        read_expected(write(tmp_path, ROWS, header=("quantity", "low", "high", "published", "source")))


@pytest.mark.parametrize("path", EXPECTED, ids=lambda path: path.relative_to(FOLDER).as_posix())
def test_every_expected_file_has_the_one_layout(path):
    """And where a bound is said to be the paper's number with a tolerance, it is."""
    for row in read_expected(path):
        tolerance = re.match(r"paper \+- ([0-9.e-]+)", row.source)
        if tolerance:
            low, high = (float(row.paper) + sign * float(tolerance[1]) for sign in (-1, 1))
            assert (row.low, row.high) == (pytest.approx(low, abs=1e-9), pytest.approx(high, abs=1e-9)), row


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.relative_to(FOLDER).as_posix())
def test_every_script_has_a_full_and_a_quick_check(script):
    assert expected(str(script)) in EXPECTED
    assert expected(str(script), "quick") in EXPECTED


def test_every_expected_file_has_a_script():
    wanted = {expected(str(script), kind) for script in SCRIPTS for kind in ("", "quick")}
    assert set(EXPECTED) == wanted


def test_quick_quantities_say_that_they_are_simulated():
    """A row of a quick run is of simulated data, or a number that theory gives."""
    exact = {"table4", "figure4_1"}
    for path in EXPECTED:
        if path.stem.endswith("_quick") and not any(name in path.stem for name in exact):
            assert all(row.quantity.startswith("simulated, ") for row in read_expected(path)), path


@pytest.mark.parametrize("path", sorted(FOLDER.rglob("*.py")), ids=lambda path: path.relative_to(FOLDER).as_posix())
def test_no_script_edits_the_path_or_ends_with_0_by_itself(path):
    """`check` and `skip` end an experiment; nothing else may make it pass."""
    for node in ast.walk(ast.parse(path.read_text())):
        words = ast.unparse(node) if isinstance(node, ast.Attribute | ast.Call) else ""
        assert words != "sys.path", f"{path}:{node.lineno}"
        if path.name != "common.py":
            assert words not in ("SystemExit(0)", "sys.exit(0)", "sys.exit()", "exit()"), f"{path}:{node.lineno}"


def test_what_cannot_run_says_that_it_was_skipped(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PLACET_DATA", str(tmp_path))
    (tmp_path / "letor9").mkdir()
    assert data_folder("letor9") == tmp_path / "letor9"
    for run in (lambda: skip("why"), lambda: need("no_such_module"), lambda: need_data("no/such/folder")):
        with pytest.raises(SystemExit) as end:
            run()
        assert end.value.code == 0
        assert "SKIPPED, nothing was checked" in capsys.readouterr().out
    need("numpy")


def test_folds_are_those_of_letor():
    assert rotation()[0] == ([0, 1, 2], 3, 4)
    assert rotation()[3] == ([3, 4, 0], 1, 2)
    parts = simulated_parts(queries=3)
    tested = [test for _, _, test in letor_folds(parts)]
    assert sorted(map(id, tested)) == sorted(map(id, parts))
    train, valid, test = next(letor_folds(parts, 1))
    assert np.array_equal(train.grade, np.concatenate([part.grade for part in parts[:3]]))
    assert len(train) == 9
    assert valid is parts[3]
    assert test is parts[4]


def test_the_paired_interval_covers_for_few_and_for_many_pairs():
    """95 % over 300 draws: between 91 and 99."""
    rng = np.random.default_rng(0)
    for n in (4, 60):
        gaps = rng.normal(0.3, 1.0, (300, n))
        found = [paired(gap, np.zeros(n)) for gap in gaps]
        covered = np.mean([d.low <= 0.3 <= d.high for d in found])
        assert 0.91 <= covered <= 0.99, (n, covered)
    assert paired([1.0, np.nan, 3.0], [0.0, 0.0, 0.0]).mean == 2.0
    assert paired([1.0], [0.0])[1:3] == (-math.inf, math.inf)


def test_the_first_check_ends_a_run_at_once_or_not_at_all(tmp_path, capsys):
    """It knows the quantities that it is given, and misses no others."""
    path = write(tmp_path, ROWS)
    check_first({"A, ours, ndcg@5": 0.5}, path)
    check_first({"A, noise": 3.0}, path)
    check_first({}, path)
    assert capsys.readouterr().out == ""
    for bad in ({"A, ours, ndcg@5": 0.6}, {"A, ours, ndcg@5": math.nan}, {"A, unheard of": 0.5}):
        with pytest.raises(SystemExit) as end:
            check_first(bad, path)
        assert end.value.code == 1
    assert "MISSING" not in capsys.readouterr().out


def test_every_script_has_three_mutants_or_more():
    counts = Counter(mutant.script for mutant in BREAKS)
    wanted = {f"{script.parent.name}.{script.stem}" for script in SCRIPTS}
    assert set(counts) == wanted
    assert min(counts.values()) >= 3, counts
    titles = [mutants.title(mutant) for mutant in BREAKS]
    assert len(set(titles)) == len(titles)


@pytest.mark.parametrize("folder", sorted({mutant.script.split(".")[0] for mutant in BREAKS}))
def test_every_mutant_breaks_something_that_exists(folder):
    """The place is there, what is put there differs, and its script can be run by `main`."""
    for mutant in BREAKS:
        if mutant.script.startswith(f"{folder}."):
            assert mutant.broken(find(mutant.place)[2]) is not find(mutant.place)[2], mutant
            assert "def main()" in (FOLDER / f"{mutant.script.replace('.', '/')}.py").read_text()


def test_parts_of_the_mutants_are_all_of_them(capsys):
    parts = [mutants.chosen(mutants_asked(part=f"{k}/5")) for k in range(5)]
    assert sorted(mutants.title(m) for part in parts for m in part) == sorted(map(mutants.title, BREAKS))
    assert mutants.chosen(mutants_asked(quick=True)) == mutants.chosen(
        mutants_asked(part=f"{mutants.part_of_commit()}/{mutants.PARTS}")
    )
    assert {m.script for m in mutants.chosen(mutants_asked(only=["pmop.table1"]))} == {"pmop.table1"}


def mutants_asked(quick=False, part=None, only=None):
    return argparse.Namespace(quick=quick, part=part, only=only)


@pytest.mark.parametrize("broken", [False, True])
def test_a_mutant_is_caught_by_a_quantity_and_survives_without(tmp_path, monkeypatch, broken, capsys):
    """In this process: the script passes as it is, and fails when a margin is off."""
    from experiments import common
    from experiments.dissertation import table4

    monkeypatch.setattr(common, "output_folder", common.output_folder)
    monkeypatch.setattr(table4, "output_folder", lambda path: tmp_path)
    monkeypatch.setattr(table4, "margins", table4.margins)
    monkeypatch.setattr("sys.argv", ["x"])
    wrong = lambda original: lambda rule, n: original("borda" if broken else rule, n)  # noqa: E731
    mutant = Mutant("dissertation.table4", "x", "experiments.dissertation.table4:margins", wrong)
    assert mutants.run_here(mutant, tmp_path) == (mutants.CAUGHT if broken else mutants.SURVIVED)
    raising = Mutant("dissertation.table4", "x", "experiments.dissertation.table4:margins", lambda original: None)
    assert mutants.run_here(raising, tmp_path) == mutants.RAISED


def test_cells_outlive_a_stop_but_not_a_change_of_code(tmp_path):
    script = tmp_path / "long.py"
    script.write_text("first")
    asked = []

    def cell():
        asked.append(1)
        return {"error": 0.5, "sizes": [1, 2]}

    one = KeptCells(str(script))
    assert one.of("a", cell) == one.of("a", cell) == {"error": 0.5, "sizes": [1, 2]}
    with open(one.path, "a") as file:
        file.write('\n{"name": "b", "code": ')  # stopped in the middle
    again = KeptCells(str(script))
    assert again.of("a", cell) == {"error": 0.5, "sizes": [1, 2]}
    assert len(asked) == 1
    again.of("b", cell)
    assert KeptCells(str(script)).known.keys() == {"a", "b"}
    script.write_text("second")
    KeptCells(str(script)).of("a", cell)
    assert len(asked) == 3


def test_cells_of_a_long_run_are_computed_once(tmp_path, capsys, monkeypatch):
    """Those of another seed anew, and quick ones always."""
    monkeypatch.setattr("experiments.kept_cells.output_folder", lambda path: tmp_path)
    monkeypatch.setattr("experiments.kept_cells.digest_of", lambda script: "digest")
    done = []

    def cell(name, value):
        def compute():
            done.append(name)
            yield f"{name}, share", value

        return name, compute

    cells = [cell("a, ties", 0.25), cell("b", 0.5), cell("c, ties", 1 / 3)]

    def run(*words):
        return run_cells(cells, common.parser("", cells=True).parse_args(words), "script.py")

    first = run("--only", "ties")
    assert first == {"a, ties, share": 0.25, "c, ties, share": 1 / 3}
    assert "a, ties: share 0.25" in capsys.readouterr().out
    assert run() == first | {"b, share": 0.5}
    assert done == ["a, ties", "c, ties", "b"]
    run("--only", "b", "--seed", "1")
    run("--only", "b", "--quick")
    run("--only", "b", "--quick")
    assert done[3:] == ["b"] * 3


def test_a_part_of_the_cells_expects_no_other_rows(tmp_path):
    rows = [("a", "", "0", "1", "why"), ("b", "", "0", "1", "why")]
    check({"a": 0.5}, write(tmp_path, rows), part=True)
    with pytest.raises(SystemExit):
        check({"a": 0.5}, write(tmp_path, rows))
    with pytest.raises(SystemExit):
        check({"a": 1.5}, write(tmp_path, rows), part=True)
