"""Sources on the command line: named files, a column of sources, errors that tell the way out."""

import json

import pytest

import placet
from placet.cli.common.read_sources import named_files


@pytest.fixture
def files(tmp_path):
    """Votes of people and of a judge, each in a file, and both in one file with a column; a table of scores."""
    found = placet.simulate.judged_votes([1.0, 0.3, -0.3, -1.0], 80, 400, items=list("abcd"), random_state=1)
    lines = {}
    for name, votes in found.items():
        rows = zip(votes.i, votes.j, votes.wins_i, votes.wins_j)
        lines[name] = [f"{votes.items[i]},{votes.items[j]},{side}" for i, j, x, y in rows for side, count in (("a", x), ("b", y)) for _ in range(int(count))]  # fmt: skip
        (tmp_path / f"{name}.csv").write_text("\n".join(["model_a,model_b,winner", *lines[name]]) + "\n")
    both = [f"{line},{name}" for name, own in lines.items() for line in own]
    (tmp_path / "both.csv").write_text("\n".join(["model_a,model_b,winner,judge", *both]) + "\n")
    (tmp_path / "table.csv").write_text("model,maths,law\na,0.9,0.8\nb,0.7,0.6\nc,0.4,\nd,0.2,0.3\n")
    (tmp_path / "alone.csv").write_text("model,maths\na,0.9\n")
    (tmp_path / "others.csv").write_text("winner,loser\nx,y\ny,x\n")
    return tmp_path


def test_named_files_and_a_column_of_sources_give_one_answer(files, placet_command):
    human, judge = f"human={files / 'human.csv'}", f"judge={files / 'judge.csv'}"
    one, said = placet_command("aggregate", human, judge, "--target", "human")
    two, _ = placet_command("aggregate", str(files / "both.csv"), "--source", "judge", "--target", "human")
    assert one == two
    assert "judge is worth" in said
    found = placet.consensus(
        placet.Sources({"human": placet.read(files / "human.csv"), "judge": placet.read(files / "judge.csv")}, "human")
    )
    assert one.splitlines()[1].split("\t")[0] == found.ranking[0]
    parts, _ = placet_command("aggregate", human, judge, "--target", "human", "--parts")
    assert [line.split("\t")[0] for line in parts.splitlines()] == [line.split("\t")[0] for line in one.splitlines()]


def test_a_name_given_twice_joins_its_files(files, placet_command):
    """A source split in two is the source; the other one may stand first."""
    head, *lines = (files / "human.csv").read_text().splitlines()
    for name, part in (("one", lines[::2]), ("two", lines[1::2])):
        (files / f"{name}.csv").write_text("\n".join([head, *part]) + "\n")
    human, judge = f"human={files / 'human.csv'}", f"judge={files / 'judge.csv'}"
    split = [f"human={files / 'one.csv'}", judge, f"human={files / 'two.csv'}"]
    whole, parts = (
        json.loads(placet_command("aggregate", *named, "--target", "human", "--json")[0])
        for named in ([human, judge], split)
    )
    score = {row["item"]: row["score"] for row in parts["ranking"]}
    assert score == pytest.approx({row["item"]: row["score"] for row in whole["ranking"]}, abs=1e-6)
    assert [row["amount"] for row in parts["sources"]] == [row["amount"] for row in whole["sources"]] == [80, 400]


def test_three_kinds_with_a_page_and_json(files, placet_command):
    named = [f"{name}={files / name}.csv" for name in ("human", "judge", "table")]
    out, _ = placet_command("aggregate", *named, "--target", "human", "--json")
    value = json.loads(out)
    assert [row["source"] for row in value["sources"]] == ["human", "judge", "table"]
    page = files / "page.html"
    placet_command("aggregate", *named, "--target", "human", "--report", str(page), "--scale", "elo")
    text = page.read_text()
    assert "The sources" in text
    assert "Where the sources differ" in text
    assert "judge is worth" in text or "judge adds" in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["human={}/human.csv", "{}/judge.csv"], "judge.csv has no name, while other files have; write NAME="),
        (["human={}/human.csv", "judge={}/judge.csv", "--target", "x"], "--target x is not among the sources: human, judge"),
        (["{}/human.csv", "--target", "human"], "--target human needs sources: name the files"),
        (["human={}/human.csv", "--source", "judge"], "give only one"),
        (["a={}/human.csv", "b={}/judge.csv", "-m", "borda"], "--method borda does not go with several sources"),
        (["a={}/human.csv", "b={}/judge.csv", "--by", "x"], "--by does not go with several sources"),
        (["a={}/human.csv", "b={}/judge.csv", "-p", "drift=1"], "unknown to 'sources'"),
        (["{}/human.csv", "{}/table.csv"], "as sources of one fit: placet aggregate human="),
        (["{}/human.csv", "--source", "judge", "--parts"], "column 'judge' is not there"),
        (["{}/table.csv", "--tasks", "--target", "music"], "target 'music' is not a source; choose from maths, law"),
        (["a={}/human.csv", "b={}/judge.csv", "--pair", "id"], "name it by --target"),
        (["{}/both.csv", "--source", "judge", "--pair", "id", "--target", "human", "--parts"], "write a file for each source"),
        (["a={}/human.csv", "b={}/alone.csv"], "source 'b' has 1 item; a source compares at least two, so leave it out"),
        (["a={}/human.csv", "b={}/others.csv"], "has no item in common with"),
        (["{}/human.csv", "--tasks"], "--tasks needs a score table"),
        (["{}/both.csv", "--tasks", "--source", "judge"], "give only one"),
    ],
)  # fmt: skip
def test_errors_tell_the_way_out(files, placet_command, words, said):
    _, err = placet_command("aggregate", *(word.format(files) for word in words), code=2)
    assert said in err


def test_an_existing_file_with_an_equals_sign_is_a_file(tmp_path):
    path = tmp_path / "a=b.csv"
    path.write_text("x")
    assert named_files([path]) == {}


def test_controls_are_those_of_votes(files, placet_command):
    """Each source has an effect of its own; a table has no votes to control."""
    for name in ("human", "judge"):
        lines = (files / f"{name}.csv").read_text().splitlines()
        more = [f"{line},{k % 3 - 1}" for k, line in enumerate(lines[1:])]
        (files / f"{name}.csv").write_text("\n".join([f"{lines[0]},length", *more]) + "\n")
    named = [f"{name}={files / name}.csv" for name in ("human", "judge", "table")]
    out, said = placet_command("aggregate", *named, "--target", "human", "--control", "length", "--json")
    assert [row["name"] for row in json.loads(out)["controls"]] == ["human: length", "judge: length"]
    assert "control judge: length: " in said
    parts = placet_command("aggregate", *named[:2], "--target", "human", "--control", "length", "--parts")[1]
    assert "control judge: length: " in parts
    _, wrong = placet_command("aggregate", *named, "--target", "human", "--control", "size", code=2)
    assert "column 'size' is not there" in wrong


def test_parts_give_the_same_answer(files, placet_command):
    """A column of sources, tasks of a table, and a table beside votes, each in memory and in parts."""
    human, table = f"human={files / 'human.csv'}", f"bench={files / 'table.csv'}"
    for words in (
        [str(files / "both.csv"), "--source", "judge", "--target", "human"],
        [str(files / "table.csv"), "--tasks", "--target", "maths"],
        [human, table, "--target", "human"],
        [human, table, "--tasks", "--target", "human", "--order-effect"],
    ):
        whole, parts = (
            json.loads(placet_command("aggregate", *words, "--json", *more)[0]) for more in ([], ["--parts"])
        )
        assert [row["source"] for row in parts["sources"]] == [row["source"] for row in whole["sources"]]
        score = {row["item"]: row["score"] for row in parts["ranking"]}
        assert score == pytest.approx({row["item"]: row["score"] for row in whole["ranking"]}, abs=1e-6)


def test_ballots_of_a_column_of_sources_in_parts(tmp_path, placet_command):
    rows = [f"{who}{k},{item},{place},{who}" for who, order in (("p", "abc"), ("q", "acd")) for k in range(6)
            for place, item in enumerate(order if k else order[::-1], 1)]  # fmt: skip
    (tmp_path / "lists.csv").write_text("\n".join(["ballot,item,rank,who", *rows]) + "\n")
    words = ["aggregate", str(tmp_path / "lists.csv"), "--source", "who", "--target", "p", "--json"]
    whole, parts = (json.loads(placet_command(*words, *more)[0]) for more in ([], ["--parts"]))
    assert "only q has d" in parts["notes"]
    score = {row["item"]: row["score"] for row in parts["ranking"]}
    assert score == pytest.approx({row["item"]: row["score"] for row in whole["ranking"]}, abs=1e-6)


def test_tasks_of_a_table_are_sources(files, placet_command):
    table = str(files / "table.csv")
    out, said = placet_command("aggregate", table, "--tasks", "--target", "maths")
    tasks = placet.Sources.of_tasks(placet.read_scores(table), "maths")
    assert [line.split("\t")[0] for line in out.splitlines()[1:]] == placet.consensus(tasks).ranking
    assert "only maths has c" in said
    named = [f"human={files / 'human.csv'}", f"bench={table}"]
    value = json.loads(placet_command("aggregate", *named, "--tasks", "--target", "human", "--json")[0])
    assert [row["source"] for row in value["sources"]] == ["human", "maths", "law"]


def test_votes_are_paired_by_a_column_of_ids(files, placet_command):
    for name in ("human", "judge"):
        head, *lines = (files / f"{name}.csv").read_text().split()
        (files / f"{name}.csv").write_text("\n".join([f"{head},id", *(f"{x},{k}" for k, x in enumerate(lines))]) + "\n")
    named = [f"{name}={files / name}.csv" for name in ("human", "judge", "table")]
    out, said = placet_command("aggregate", *named, "--target", "human", "--pair", "id")
    assert "judge judged the answers of " in said
    for more in ([], ["--order-effect"]):
        words = ["aggregate", *named, "--target", "human", "--pair", "id", *more, "--json"]
        whole, parts = (json.loads(placet_command(*words, *where)[0]) for where in ([], ["--parts"]))
        score = {row["item"]: row["score"] for row in parts["ranking"]}
        assert score == pytest.approx({row["item"]: row["score"] for row in whole["ranking"]}, abs=1e-6)
        assert next(note for note in parts["notes"] if "judged the answers of" in note) in whole["notes"]
    data = {name: placet.read(files / f"{name}.csv", agent="id") for name in ("human", "judge")}
    found = placet.consensus(placet.Sources(data | {"table": placet.read(files / "table.csv")}, "human", paired=True))
    assert [line.split("\t")[0] for line in out.splitlines()[1:]] == found.ranking


def test_simulated_sources_and_tables_are_read_as_such(tmp_path, placet_command):
    """A judge who guesses is said to add nothing; a table with holes is fitted by item response."""
    votes, table = tmp_path / "votes.csv", tmp_path / "table.csv"
    given = ("--n", "200", "--judged", "2000", "--scale")
    for scale, said in (("1.3", "judge is worth"), ("0", "judge adds nothing")):
        _, err = placet_command("simulate", "judged-votes", *given, scale, "--out", votes)
        assert f"next: placet aggregate {votes} --source agent --target human" in err
        assert said in placet_command("aggregate", votes, "--source", "agent", "--target", "human")[1]
    placet_command("simulate", "benchmark-table", "--items", "6", "--tasks", "4", "--out", table)
    assert "item-response, the default" in placet_command("aggregate", table)[1]
    placet_command("simulate", "benchmark-table", "--dispersion", "2", "--out", tmp_path / "no.csv", code=2)
    assert not (tmp_path / "no.csv").exists()
