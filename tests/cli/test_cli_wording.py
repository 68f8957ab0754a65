"""Messages in the words of the command line."""

import pytest

import placet
from placet.cli.common.option_wording import in_options
from placet.data import DataError
from placet.io.formats import FORMATS


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ('read with on_error="skip" to leave', "read with --on-error skip to leave"),
        ("name the columns with a=, b= and winner= (or scores=)", "with --a, --b and --winner (or --read scores=...)"),
        ("name them with qid=, label= and features=", "with --qid, --label and --read features=..."),
        ('say format="battles" or format="ratings"', "say --format battles or --format ratings"),
        ('format="features", qid="...", label="..."; x', "--format features --qid ... --label ...; x"),
        ("say ignore='first name' if it is not an item", "say --ignore 'first name' if it is not an item"),
        ("say ignore=['b', 'c d']", "say --ignore 'b,c d'"),
        ('layout="ranks" (a column per item)', "--read layout=ranks (a column per item)"),
        ("Comparisons made with ordered=True", "made with --read ordered=true"),
        ("Spearman's distance; use distance='kendall'", "Spearman's distance; use --param distance=kendall"),
        ("use strength='difference' (of tiers)", "use --param strength=difference (of tiers)"),
        (
            "votes that say who gave them: read_battles(agent=) or from_battles(agent=)",
            "name their column with --agent",
        ),
        ('with outcomes={"word": "a" | "b" | "tie"}', 'with outcomes={"word": "a" | "b" | "tie"}'),
    ],
)
def test_arguments_become_options(said, expected):
    assert expected in in_options(said)


@pytest.mark.parametrize(
    "said",
    [
        "votes.csv: cell 'a=' is not a number",
        "votes.csv: cell \"on_error='skip'\" is not a number",
        "--a left and --read a=right: give one of the two",
        '-r a="x" -p prior=0.5 --param ties=3',
        "a=1/votes.csv: no such file; time=3.csv: none",
        "continue with start='here'",
        "accuracy=0.5 and n=3",
        "a == b, a=b",
    ],
)
def test_everything_else_stays(said):
    assert in_options(said) == said


@pytest.mark.parametrize("name", [name for name, one in FORMATS.items() if one.hint])
def test_hints_of_every_format_can_be_pasted(name):
    said = in_options(f'format="{name}", {FORMATS[name].hint}')
    assert said.startswith(f"--format {name} --")
    assert '"' not in said


@pytest.mark.parametrize(
    ("text", "python", "here"),
    [
        ("model_a,model_b,winner\nx,x,model_a\n", 'on_error="skip"', "--on-error skip"),
        ("p,q,r\nu,v,w\n", 'format="battles", a="..."', "--format battles --a ... --b ... --winner ..."),
        ("user,item,rating\nu,v,w\n", 'on_error="skip"', "read with --on-error skip"),
    ],
)
def test_python_speaks_of_arguments_and_the_command_of_options(tmp_path, answer, text, python, here):
    path = tmp_path / "file.csv"
    path.write_text(text)
    with pytest.raises(DataError) as error:
        placet.read(path)
    assert python in str(error.value)
    said = answer("aggregate", path, code=2)
    assert here in said
    assert python not in said


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_other_encodings_are_answered_with_a_command(tmp_path, encoding):
    path = tmp_path / "votes.csv"
    path.write_text("a,b,winner\ncafé,thé,a\n", encoding=encoding)
    with pytest.raises(DataError, match=f'open\\(path, encoding="{encoding}"\\)') as raised:
        placet.read(path)
    said = in_options(str(raised.value))
    assert f"iconv -f {encoding.replace('latin-1', 'latin1')} -t utf-8 FILE > NEW" in said
    assert "open(" not in said


def test_short_heads_are_told_of_in_the_words_of_the_command(placet_command, tmp_path):
    lines = [f"u{k},i{(7 * k + j) % 40},{5 - j}" for k in range(60) for j in range(3)]
    (tmp_path / "r.csv").write_text("\n".join(["user,item,rating", *lines]) + "\n")
    _, err = placet_command("aggregate", tmp_path / "r.csv", "--method", "borda")
    assert "--read unlisted=last" in err
    assert "completed()" not in err
