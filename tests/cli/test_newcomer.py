"""What newcomers type without reading: each line is answered, or refused with what to type instead."""

import csv
import gzip
import math
import os
import shlex
import shutil
import zipfile
from pathlib import Path

import pytest
import typer

from placet.cli import app
from placet.cli.help.help_text import value_name

SEARCH = Path(__file__).parents[2] / "docs/files/search.letor"

VOTES = (
    "model_a,model_b,winner\ngpt,claude,model_a\ngpt,claude,model_b\nclaude,gemini,tie\ngemini,gpt,model_b\n"
    "llama,gpt,model_b\nllama,claude,model_a\ngemini,llama,model_a\ngpt,llama,tie\n"
)
FILES = {
    "rows.letor": "1 qid:1 1:0.5\n0 qid:1 1:0.1\n",
    "votes.csv": VOTES,
    "german.csv": "Player A;Player B;Who won\nAnn;Bob;Ann\nBob;Cid;Cid\nCid;Ann;draw\n",
    "empty.csv": "",
    "header.csv": "model_a,model_b,winner\n",
    "odd.csv": "timestamp,user,choice1,choice2,preferred\n2024-01-01,u1,red,blue,red\n2024-01-02,u2,blue,green,green\n"
    "2024-01-02,u2,red,green,red\n",
    "tworatings.csv": "Movie,Rating\nAlien,5\nHeat,4\nAlien,3\n",
    "ratings.csv": "user,movie,stars\nu1,Alien,5\nu1,Heat,4\nu2,Alien,3\nu2,Heat,5\n",
    "wl.csv": "winner,loser\nAnn,Bob\nBob,Cid\nAnn,Cid\n",
    "google_form.csv": "Timestamp,Rank [Pizza],Rank [Sushi],Rank [Tacos]\n1/2/2024,1,2,3\n1/2/2024,2,1,3\n1/3/2024,1,3,2\n",
    "google_form2.csv": "Timestamp,Email,First choice,Second choice,Third choice\n1/2/2024,a@b,Pizza,Sushi,Tacos\n"
    "1/2/2024,c@d,Sushi,Pizza,\n",
    "bench.csv": "model,mmlu,gsm8k,hellaswag\nA,0.71,0.60,0.80\nB,0.69,0.66,0.79\nC,0.5,0.4,0.7\n",
    "weird.json": '{"a":1}\n',
    "bad.csv": "model_a,model_b,winner\ngpt,claude,model_a\ngpt,claude,lefft\n",
}


@pytest.fixture
def files(tmp_path):
    """The folder in which people type: the names of what is in it."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "votes.csv.gz").write_bytes(gzip.compress(VOTES.encode()))
    with zipfile.ZipFile(tmp_path / "votes.xlsx", "w") as file:
        file.writestr("[Content_Types].xml", "<x/>")
        file.writestr("xl/workbook.xml", "<x/>")
    shutil.copy(tmp_path / "votes.xlsx", tmp_path / "v.zip")
    with zipfile.ZipFile(tmp_path / "two.zip", "w") as file:
        file.writestr("a.csv", VOTES)
        file.writestr("b.csv", VOTES)
    (tmp_path / "emptydir").mkdir()
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "votes.csv").write_text(VOTES)
    return sorted(path.name for path in tmp_path.iterdir())


@pytest.fixture
def typed(files, tmp_path, monkeypatch, placet_command):
    """``typed(line, code)``: the words of a line, of which ``cat FILE |`` is the pipe; gives (stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def answer(line, code):
        piped, _, line = line.rpartition("| ")
        reading, writing = os.pipe() if piped else (os.open(os.devnull, os.O_RDONLY), os.open(os.devnull, os.O_WRONLY))
        os.write(writing, (tmp_path / piped.split()[1]).read_bytes() if piped else b"")
        os.close(writing)
        kept = os.dup(0)
        os.dup2(reading, 0)
        try:
            with open(reading) as stdin:
                monkeypatch.setattr("sys.stdin", stdin)
                return placet_command(*line.split()[1:], code=code)
        finally:
            os.dup2(kept, 0)
            os.close(kept)

    return answer


BOARD = "item\tscore\tstderr\trank\trank_low\trank_high\ttier\tsupport\ngpt\t"

NEWCOMER = [
    ("placet", 2, "Usage: placet COMMAND"),
    ("placet votes.csv", 2, "votes.csv is a file; to rank what is in it: placet aggregate votes.csv"),
    ("placet rank votes.csv", 0, BOARD),
    ("placet agregate votes.csv", 2, "there is no command 'agregate'; did you mean placet aggregate?"),
    ("placet aggregate", 2, "placet aggregate needs FILE (- for standard input): votes, ballots"),
    ("placet aggregate vote.csv", 2, "vote.csv: no such file or directory; did you mean votes.csv?"),
    ("placet aggregate votes.csv", 0, BOARD),
    (
        "placet aggregate votes.csv --method elo",
        2,
        "Elo is a scale of scores here: ask for bradley-terry, with --scale elo",
    ),
    ("placet aggregate votes.csv --method bradley_terry", 0, BOARD),
    ("placet aggregate votes.csv --method bt", 0, BOARD),
    ("placet aggregate votes.csv --method bradly-terry", 2, "is unknown (did you mean 'bradley-terry'?); choose from"),
    ("placet aggregate votes.csv --methods bradley-terry", 0, BOARD),
    ("placet aggregate votes.csv -o out.csv", 0, "read as votes"),
    ("placet aggregate votes.csv --output out.csv", 0, "read as votes"),
    ("placet aggregate votes.csv --out out.xlsx", 2, ".json, .jsonl, .parquet; spreadsheets open .csv"),
    ("placet aggregate votes.csv --html page.html", 0, "report: page.html"),
    (
        "placet aggregate votes.csv --report",
        2,
        "placet aggregate needs --report PAGE.html: write a page about the result",
    ),
    ("placet aggregate --method borda votes.csv", 0, BOARD + "3.5"),
    ("placet --method borda aggregate votes.csv", 2, "options of a command stand after its name"),
    ("placet aggregate votes.csv --format csv", 2, "'csv' is a kind of file, which is found by itself: leave it out"),
    ("placet aggregate votes.xlsx", 2, "not a whole workbook, or one with a password; save the sheet as CSV UTF-8"),
    ("placet aggregate v.zip", 2, "not a whole workbook, or one with a password; save the sheet as CSV UTF-8"),
    ("placet aggregate votes.csv.gz", 0, BOARD),
    ("cat votes.csv | placet aggregate -", 0, BOARD),
    ("cat votes.csv | placet aggregate", 2, "to read what is piped in: placet aggregate -"),
    ("placet aggregate folder", 0, BOARD),
    ("placet aggregate emptydir", 2, "emptydir: the folder holds no files"),
    ("placet aggregate empty.csv", 2, "empty.csv: the file is empty"),
    ("placet aggregate header.csv", 2, "header.csv: no votes in it; a row has two items and who won"),
    ("placet aggregate https://example.org/votes.csv", 2, "download it first: curl -LO https://example.org/votes.csv"),
    ("placet aggregate german.csv", 2, "say --format battles --a 'Player A' --b 'Player B' --winner 'Who won'"),
    (
        "placet aggregate odd.csv",
        2,
        "for votes say --format battles --a choice1 --b choice2 --winner preferred; for ballots",
    ),
    ("placet aggregate odd.csv --a choice1 --b choice2 --winner preferred", 0, "\nred\t"),
    ("placet aggregate tworatings.csv", 2, "columns 'Movie' and 'Rating' look like ratings, but none says who rated"),
    ("placet aggregate ratings.csv", 0, "\nHeat\t"),
    ("placet aggregate wl.csv", 0, "\nAnn\t"),
    ("placet aggregate google_form.csv", 0, "\nPizza\t"),
    ("placet aggregate google_form2.csv", 0, "\nSushi\t"),
    ("placet aggregate bench.csv", 0, "\nB\t0.713"),
    (
        "placet aggregate bad.csv",
        2,
        "bad.csv:3: winner 'lefft' is not a, b or tie (1 such line); write a, b or tie there",
    ),
    ("placet aggregate votes.csv --level 95", 2, "for 95 % say --level 0.95"),
    ("placet aggregate votes.csv --confidence 0.9", 0, BOARD),
    ("placet aggregate votes.csv --ties davidson", 0, BOARD),
    ("placet aggregate votes.csv -p tie=davidson", 2, "'tie' is unknown to 'bradley-terry' (did you mean 'ties'?)"),
    ("placet aggregate votes.csv --scale Elo", 0, BOARD + "1084"),
    ("placet aggregate votes.csv --anchor gpt=1000", 2, "--anchor gpt=1000 needs --scale, such as --scale elo"),
    ("placet aggregate votes.csv --bootstrap", 2, "placet aggregate needs --bootstrap N: rounds of resampling"),
    ("placet aggregate votes.csv --top 2", 0, BOARD),
    ("placet aggregate votes.csv --quiet", 0, BOARD),
    ("placet aggregate votes.csv -v", 2, "no option -v; notes are shown unless you say -q; -V is the version"),
    ("placet -V", 0, "0."),
    ("placet -h", 0, "Usage: placet COMMAND"),
    ("placet help aggregate", 0, "Examples:"),
    ("placet aggregate -h", 0, "--method NAME"),
    (
        "placet audit votes.csv --method condorcet",
        2,
        "schulze, ranked-pairs, minimax and copeland elect the head-to-head",
    ),
    ("placet audit", 2, "give a file of ballots, or --items with the number of items"),
    ("placet train votes.csv", 2, "these are votes, not rows with features; give LETOR"),
    ("placet train votes.csv --out m.placet", 2, "these are votes, not rows with features; give LETOR"),
    ("placet train ratings.csv --out m", 2, "these are ratings, not rows with features; give LETOR"),
    ("placet score votes.csv votes.csv", 2, "votes.csv: this is not a saved model; placet train writes one"),
    ("placet evaluate votes.csv", 2, "placet evaluate needs LABELS: LETOR / svmlight file, TREC qrels"),
    (
        "placet evaluate votes.csv votes.csv",
        2,
        "column 'qid' is not there; the columns are ['model_a', 'model_b', 'winner']",
    ),
    ("placet compare votes.csv", 2, "placet compare needs SYSTEM: models, files of scores, or TREC runs"),
    ("placet describe votes.csv", 0, "items\t4\nvotes\t8.0\nties\t2.0\npairs\t6\n"),
    ("placet describe weird.json", 2, "write a list of objects: [{...}, {...}]"),
    ("placet convert votes.csv votes.parquet", 0, "votes.parquet: Comparisons(6 pairs, 4 items, 8 votes)"),
    ("placet convert votes.csv votes.xlsx", 2, "votes.xlsx: files of .xlsx are not written; write .csv and open that"),
    (
        "placet diff votes.csv votes.csv",
        2,
        "not a board of Placet; write one with: placet aggregate FILE --out board.json",
    ),
    ("placet serve nofile.csv", 2, "nofile.csv: no such file or directory"),
    ("placet simulate", 2, "Usage: placet simulate COMMAND"),
    ("placet simulate battles", 2, "placet simulate battles needs --out FILE: file to write"),
    ("placet track votes.csv", 2, "placet track needs --beacons FILE: table of beacons: id, lat, lon"),
    ("placet completion", 2, "placet completion needs SHELL: your shell: bash, zsh or fish"),
    ("placet --version", 0, "0."),
]
"""Lines typed by somebody who has read nothing, the exit code, and what must be in the answer."""

MORE = [
    ("placet convert votes.csv out.foo", 2, "the suffix '.foo' is unknown; choose from .txt, .abif,"),
    ("placet help", 0, "Learn to rank:"),
    ("placet methods", 0, "bradley-terry\tmodel\tvotes, ballots\t"),
    ("placet methods pl", 0, "Plackett-Luce (plackett-luce), a model"),
    ("placet aggregate votes.csv --method BT", 0, BOARD),
    ("placet aggregate votes.csv --order-effect", 0, BOARD),
    ("placet aggregate votes.csv --level 0.9 --title --html --report page.html", 0, "report: page.html"),
    ("placet audit votes.csv -m Borda", 0, "check"),
    ("placet aggregate two.zip", 2, "two.zip: a zip archive with 2 files (a.csv, b.csv); one is read, so unpack it"),
    ("placet aggregate votes.csv --top 2 --json", 2, "--top 2 is for the table shown"),
    ("placet aggregate votes.csv --qid x", 2, "placet aggregate has no option --qid"),
    ("placet aggregate votes.csv --html", 2, "placet aggregate needs --report PAGE.html"),
    ("placet aggregate votes.csv --lvel 0.9", 2, "has no option --lvel; did you mean --level?"),
    ("placet aggregate folder/vote.csv", 2, "did you mean folder/votes.csv?"),
    ("placet simulate batles", 2, "did you mean placet simulate battles?"),
    ("placet train nofile.letor", 2, "nofile.letor: no such file"),
    ("placet train rows.letor", 2, "placet train needs --out FILE: file to write the model to"),
    ("placet train ratings.csv --order stars", 2, "placet train needs --out FILE"),
    ("placet help foo", 2, "there is no command 'foo'"),
]

WRITTEN = {"out.csv", "page.html", "votes.parquet"}
"""Files that the lines above ask for."""


def test_every_line_of_a_newcomer_is_here():
    assert len({line for line, *_ in NEWCOMER}) == 74


@pytest.mark.parametrize(("line", "code", "said"), [*NEWCOMER, *MORE])
def test_a_newcomer_is_answered(typed, files, tmp_path, line, code, said):
    """Mistakes are answered in one line on stderr and write nothing; only help is shown on stdout with them."""
    out, err = typed(line, code)
    assert said in out + err
    now = {path.name for path in tmp_path.iterdir()}
    if code == 2:
        assert now == set(files)
        assert out == "" or "Usage:" in out
        to_paste = err.count("\n  placet ")  # what may be read in several ways: the command of each
        assert out or (err.startswith("placet: ") and err.count("\n") == 1 + to_paste)
    else:
        assert now - set(files) == {name for name in WRITTEN if name in line}


def test_quiet_leaves_only_the_table_and_errors(typed):
    out, err = typed("placet aggregate votes.csv -q", 0)
    assert out.startswith("item\t")
    assert err == ""
    assert "lefft" in typed("placet aggregate bad.csv -q", 2)[1]
    assert "read as votes" in typed("placet aggregate votes.csv", 0)[1]


def every_command(group=None, path=()):
    group = group or typer.main.get_command(app)
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from every_command(command, (*path, name))
        else:
            yield pytest.param(command, id=" ".join((*path, name)))


@pytest.mark.parametrize("command", list(every_command()))
def test_every_command_can_be_quiet_and_offers_help_by_a_letter(command):
    names = {name: param for param in command.params for name in param.opts}
    assert names["-q"] is names["--quiet"]
    assert names["-q"].help == "No notes or progress on stderr, only errors."
    assert command.context_settings["help_option_names"] == ["-h", "--help"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("placet simulate battles --items 3 --n 20 --out drawn.csv", "drawn.csv: "),
        ("placet plan --items 3 --goal best --gap 1", ""),
    ],
)
def test_commands_that_read_no_table_are_quiet_too(typed, line, said):
    loud, notes = typed(line, 0)
    assert said in notes
    assert typed(f"{line} -q", 0) == (loud, "")


def test_top_shows_the_best_and_o_writes(typed, tmp_path):
    whole = typed("placet aggregate votes.csv", 0)[0].splitlines()
    assert typed("placet aggregate votes.csv --top 2", 0)[0].splitlines() == whole[:3]
    typed("placet aggregate votes.csv -o ranking.csv", 0)
    assert len((tmp_path / "ranking.csv").read_text().splitlines()) == 5


def said_next(err):
    return [shlex.split(line) for line in err.replace(", then ", "\n").split("next: ")[1].splitlines()]


def test_train_ends_with_the_metric_and_the_next_commands(placet_command, tmp_path, monkeypatch):
    """The number is that of the commands it names, which run as they are told."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(SEARCH, "search.letor")
    words = ["train", "search.letor", "--out", "m.placet"]
    assert "no --valid was given" in placet_command(*words)[1]
    err = placet_command(*words, "--valid", "search.letor")[1]
    score, evaluate = ([w.replace("FILE", "search.letor") for w in line[1:]] for line in said_next(err))
    placet_command(*score)
    mean = float(placet_command(*evaluate)[0].splitlines()[1].split("\t")[1])
    assert f"ndcg@10 on search.letor: {mean:.4f}\n" in err
    assert mean > 0.7


@pytest.mark.parametrize("more", [[], ["--emission", "0.05", "--steps", "20"]], ids=["known emission", "not known"])
def test_simulated_signals_come_with_the_command_that_tracks_them(placet_command, tmp_path, monkeypatch, more):
    monkeypatch.chdir(tmp_path)
    given = ["--out", "example", "--steps", "150", "--clutter-rate", "1", *more]
    err = placet_command("simulate", "ranked-signals", *given)[1]
    particles = "300" if more else "2000"
    placet_command(*said_next(err)[0][1:], "--particles", particles, "--chains", "2", "--out", "track.csv")
    track, truth = (
        [(float(row["x"]), float(row["y"])) for row in csv.DictReader(Path(name).read_text().splitlines())]
        for name in ("track.csv", "example/truth.csv")
    )
    assert len(track) == (20 if more else 150)
    assert max(math.dist(a, b) for a, b in zip(track, truth)) < (1.0 if more else 0.3)
    assert ("--emission=0.05" in err) == bool(more)


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
    assert max(map(len, text.splitlines())) <= 80
    assert "``" not in text
    assert f"Usage: placet {name}" in body
    assert "<" not in body.replace("<(", "")  # no type of Python


@pytest.mark.parametrize("name", commands())
def test_values_of_options_say_what_they_are(name):
    """Not the name of the option again; a goal has several forms, and a token and a name are what they are called."""
    again = {
        param.opts[0]
        for param in commands()[name].params
        if param.param_type_name == "option" and value_name(param) == param.name.upper().replace("_", "-")
        if not param.is_flag
        and param.name not in ("goal", "token", "name", "install_completion", "show_completion", "n", "k")
    }
    assert again == set()


@pytest.mark.parametrize("name", ["train", "simulate battles", "track", "aggregate"])
def test_usage_shows_the_options_that_are_needed(placet_command, name):
    usage = next(line for line in placet_command(*name.split(), "-h")[0].splitlines() if line.startswith("Usage:"))
    needed = [
        max(param.opts[:2], key=len) for param in commands()[name].params if param.required and param.opts[0][0] == "-"
    ]
    assert [word for word in usage.split() if word.startswith("--")] == needed


@pytest.mark.parametrize("name", commands())
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
