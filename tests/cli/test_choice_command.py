"""``placet choice``: the same numbers as in Python, in every output, and bad data with exit code 2."""

import json

import pytest

import placet
from placet.io.tables.tables import write_table


@pytest.fixture(scope="module")
def trips(tmp_path_factory):
    path = tmp_path_factory.mktemp("choices") / "trips.csv"
    rows = placet.simulate.choices({"price": -1.0, "comfort": 0.5}, 120, per_agent=4, alternatives=3)
    names = [["bus", "car", "tram"][k - 1] for k in rows["alternative"]]
    write_table(path, {**rows, "alternative": names, "income": rows["agent"] % 7})
    return path


def test_the_table_is_that_of_python(placet_command, trips, tmp_path):
    fit = placet.choice(trips)
    out, err = placet_command("choice", trips)
    head, *rows = [line.split("\t") for line in out.splitlines()]
    assert head == ["name", "coefficient", "stderr", "z", "p", "low", "high"]
    assert [(row[0], float(row[1]), float(row[2])) for row in rows] == [
        (name, *fit.coefficients[name][:2]) for name in fit.coefficients.names
    ]
    assert "sandwich over 30 persons" in err
    assert "not used, being equal for all alternatives of a choice: income (see --case)" in err
    out, _ = placet_command("choice", trips, "--json", "--no-constants", "--errors", "observed")
    found = json.loads(out)
    assert [row["name"] for row in found["coefficients"]] == ["price", "comfort"]
    assert found["errors"] == "observed information"
    placet_command(
        "choice", trips, "--case", "income", "--base", "tram", "--price", "price", "--out", tmp_path / "c.csv"
    )
    lines = (tmp_path / "c.csv").read_text().splitlines()
    assert lines[0].startswith("quantity,name,coefficient")
    assert [line.split(",")[1] for line in lines[1:]].count("income:bus") == 2
    assert not any(line.startswith("willingness to pay,price,") for line in lines)


def test_simulated_choices_are_read_back(placet_command, tmp_path):
    path = tmp_path / "drawn.csv"
    placet_command("simulate", "choices", "--n", "300", "--per-agent", "3", "--out", path)
    out, err = placet_command("choice", path)
    assert [line.split("\t")[0] for line in out.splitlines()] == ["name", "price", "comfort"]
    assert "300 choices among 4 alternatives by 100 persons" in err


def test_groups_have_a_column_and_shares(placet_command, trips):
    out, err = placet_command("choice", trips, "--classes", "2", "--no-constants")
    assert [line.split("\t")[0] for line in out.splitlines()] == ["group", "1", "1", "2", "2"]
    assert "2 groups of choosers" in err


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("price,speed\n1,2\n", [], "--chosen"),
        ("id,chosen,x\n1,1,3\n1,1,4\n", [], "has 2 chosen rows"),
        ("id,chosen,x\n1,1,3\n1,0,4\n2,0,9\n2,1,5\n", [], "is never lower for the chosen alternative"),
        ("id,chosen,x\n1,1,3\n1,0,4\n2,1,9\n2,0,5\n", ["--constants"], "name it with --alternative"),
        ("id,chosen,x\n1,1,3\n1,0,4\n", ["--read", "colour=x"], "colour"),
        ("id,chosen,x\n1,1,3\n1,0,4\n", ["--level", "95"], "--level 0.95"),
        ("id,chosen,x\n1,1,3\n1,0,4\n", ["--out", "c.pdf"], "suffix"),
    ],
)
def test_bad_data_are_explained(placet_command, tmp_path, text, options, words):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    _, err = placet_command("choice", path, *options, code=2)
    assert words in err
