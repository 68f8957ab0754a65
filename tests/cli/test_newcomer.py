"""What newcomers type without reading: each line is answered, or refused with what to type instead."""

import zipfile

import pytest

VOTES = (
    "model_a,model_b,winner\ngpt,claude,model_a\ngpt,claude,model_b\nclaude,gemini,tie\ngemini,gpt,model_b\n"
    "llama,gpt,model_b\nllama,claude,model_a\ngemini,llama,model_a\ngpt,llama,tie\n"
)
FILES = {
    "votes.csv": VOTES,
    "german.csv": "Player A;Player B;Who won\nAnn;Bob;Ann\nBob;Cid;Cid\nCid;Ann;draw\n",
    "empty.csv": "",
    "header.csv": "model_a,model_b,winner\n",
    "tworatings.csv": "Movie,Rating\nAlien,5\nHeat,4\nAlien,3\n",
    "ratings.csv": "user,movie,stars\nu1,Alien,5\nu1,Heat,4\nu2,Alien,3\nu2,Heat,5\n",
    "bad.csv": "model_a,model_b,winner\ngpt,claude,model_a\ngpt,claude,lefft\n",
    "odd.csv": "timestamp,user,choice1,choice2,preferred\n2024-01-01,u1,red,blue,red\n2024-01-02,u2,blue,green,green\n",
    "weird.json": '{"a":1}\n',
}


@pytest.fixture
def typed(tmp_path, monkeypatch, placet_command):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    with zipfile.ZipFile(tmp_path / "votes.xlsx", "w") as file:
        file.writestr("[Content_Types].xml", "<x/>")
        file.writestr("xl/workbook.xml", "<x/>")
    with zipfile.ZipFile(tmp_path / "v.zip", "w") as file:
        file.writestr("a.csv", VOTES)
        file.writestr("b.csv", VOTES)
    (tmp_path / "emptydir").mkdir()
    monkeypatch.chdir(tmp_path)
    return lambda line, code: placet_command(*line.split(), code=code)


ANSWERED = [
    ("rank votes.csv", "gpt\t"),
    ("help aggregate", "Examples:"),
    ("help", "Learn to rank:"),
    ("-h", "Usage: placet COMMAND"),
    ("aggregate -h", "--method NAME"),
    ("-V", "0."),
    ("methods", "bradley-terry\tmodel\tvotes, ballots\t"),
    ("methods pl", "Plackett-Luce (plackett-luce), a model"),
    ("aggregate votes.csv --method bradley_terry", "gpt\t"),
    ("aggregate votes.csv --method BT", "gpt\t"),
    ("aggregate votes.csv --ties davidson", "gpt\t"),
    ("aggregate votes.csv --scale Elo", "gpt\t1"),
    ("aggregate votes.csv --order-effect", "gpt\t"),
    ("audit votes.csv -m Borda", "check"),
    ("aggregate odd.csv --a choice1 --b choice2 --winner preferred", "red\t"),
]

REFUSED = [
    ("votes.csv", "votes.csv is a file; to rank what is in it: placet aggregate votes.csv"),
    ("agregate votes.csv", "there is no command 'agregate'; did you mean placet aggregate?"),
    ("aggregate", "placet aggregate needs FILE (- for standard input): votes, ballots"),
    ("aggregate vote.csv", "vote.csv: no such file"),
    ("aggregate votes.csv --method elo", "Elo is a scale of scores here: ask for bradley-terry, with --scale elo"),
    ("aggregate votes.csv --method bradly-terry", "(did you mean 'bradley-terry'?)"),
    ("aggregate votes.csv --methods borda", "has no option --methods; did you mean --method?"),
    ("aggregate votes.csv --output x.csv", "has no option --output; did you mean --out?"),
    ("aggregate votes.csv --html x.html", "has no option --html; did you mean --report?"),
    ("aggregate votes.csv --report", "--report needs a value"),
    ("--method borda aggregate votes.csv", "options of a command stand after its name"),
    ("aggregate votes.csv --level 95", "for 95 % say --level 0.95"),
    ("aggregate votes.csv --confidence 0.9", "did you mean --level?"),
    ("aggregate votes.csv -p tie=davidson", "parameter 'tie' is unknown"),
    ("aggregate votes.csv --anchor gpt=1000", "needs --scale"),
    ("aggregate votes.csv --top 2 --json", "--top 2 is for the table shown"),
    ("aggregate votes.csv --out x.xlsx", "suffix '.xlsx' is unknown"),
    ("aggregate emptydir", "the folder holds no files"),
    ("aggregate empty.csv", "the file is empty"),
    ("aggregate header.csv", "no battles"),
    ("aggregate https://example.org/votes.csv", "https://example.org/votes.csv: an address, not a file; download it"),
    ("aggregate votes.xlsx", "votes.xlsx: "),
    ("aggregate v.zip", "v.zip: a zip archive with 2 files (a.csv, b.csv); one is read, so unpack it"),
    ("convert votes.csv out.xlsx", "out.xlsx: files of .xlsx are not written"),
    ("aggregate votes.csv --format csv", "format 'csv' is a kind of file, which is found by itself"),
    ("aggregate german.csv", "looks like votes; say --format battles --a 'Player A' --b 'Player B' --winner 'Who won'"),
    ("aggregate odd.csv", "for votes say --format battles --a choice1 --b choice2 --winner preferred; for ballots"),
    ("aggregate tworatings.csv", "columns 'Movie' and 'Rating' look like ratings, but none says who rated"),
    ("describe weird.json", "is not a list"),
    ("aggregate bad.csv", "write a, b or tie there"),
    ("audit votes.csv --method condorcet", "schulze, ranked-pairs, minimax and copeland"),
    ("train votes.csv", "placet train needs --out"),
    ("train votes.csv --out m.placet", "these are votes"),
    ("score votes.csv votes.csv", "not a saved model"),
    ("diff votes.csv votes.csv", "not a board"),
    ("serve nofile.csv", "no such file"),
    ("simulate battles", "placet simulate battles needs --out"),
    ("simulate batles", "did you mean placet simulate battles?"),
    ("help foo", "there is no command 'foo'"),
    ("aggregate votes.csv --qid x", "placet aggregate has no option --qid"),
]


@pytest.mark.parametrize(("line", "said"), ANSWERED)
def test_it_is_answered(typed, line, said):
    assert said in typed(line, 0)[0]


@pytest.mark.parametrize(("line", "said"), REFUSED)
def test_it_is_refused_with_the_way_out(typed, tmp_path, line, said):
    out, err = typed(line, 2)
    assert out == ""
    assert said in err
    assert err.startswith("placet: ")
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([*FILES, "votes.xlsx", "v.zip", "emptydir"])


def test_quiet_leaves_only_the_table_and_errors(typed):
    out, err = typed("aggregate votes.csv -q", 0)
    assert out.startswith("item\t")
    assert err == ""
    assert "lefft" in typed("aggregate bad.csv -q", 2)[1]
    assert "read as votes" in typed("aggregate votes.csv", 0)[1]


def test_top_shows_the_best_and_o_writes(typed, tmp_path):
    whole = typed("aggregate votes.csv", 0)[0].splitlines()
    assert typed("aggregate votes.csv --top 2", 0)[0].splitlines() == whole[:3]
    typed("aggregate votes.csv -o ranking.csv", 0)
    assert len((tmp_path / "ranking.csv").read_text().splitlines()) == 5


def commands():
    from typer.main import get_command

    from placet.cli import app

    group = get_command(app)
    return {**group.commands, **{f"simulate {name}": one for name, one in group.commands["simulate"].commands.items()}}


@pytest.mark.parametrize("name", commands())
def test_help_fits_a_terminal_and_is_in_groups(placet_command, monkeypatch, name):
    monkeypatch.setenv("COLUMNS", "80")
    text = placet_command(*name.split(), "--help")[0]
    body = text.partition("Examples:")[0]
    assert max(map(len, body.splitlines())) <= 80
    assert f"Usage: placet {name}" in body
    assert "<" not in body.replace("<(", "")  # no type of Python


@pytest.mark.parametrize("name", [name for name in commands() if " " not in name])
def test_examples_of_help_use_options_that_exist(name):
    """Three lines at least, each of commands and options that there are."""
    lines = [line.partition("  # ")[0].split() for line in commands()[name].epilog.strip().splitlines()]
    assert len(lines) >= 3
    for words in lines:
        assert words[0] == "placet"
        command = commands().get(" ".join(words[1:3])) or commands()[words[1]]
        known = {option for param in command.params for option in param.opts} | {"--help"}
        if hasattr(command, "commands"):
            continue
        assert {word for word in words[2:] if word.startswith("-") and len(word) > 1} <= known, words
