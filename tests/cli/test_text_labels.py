"""``placet train tickets.csv --text text --labels tags``: from a table of texts to the names of labels."""

import shlex

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed (pip install 'placet[neural]')")
pytestmark = pytest.mark.jit

from placet.io import read_labeled_texts  # noqa: E402
from placet.rank import LabelRanker  # noqa: E402

ROWS = ["my card was charged twice,billing", "card charged again: refund me,billing; refund", "refund my money,refund"]
OPTIONS = ["--text", "text", "--labels", "tags", "--param", "hidden=4"]


@pytest.fixture(scope="module")
def tickets(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tickets")
    (folder / "t.csv").write_text("text,tags\n" + "\n".join(ROWS * 20) + "\n")
    (folder / "new.csv").write_text("id,body\n1,card charged\n2,give my money back: refund\n")
    ranker = LabelRanker(hidden=4, learning_rate=0.05, epochs=20).fit(read_labeled_texts(folder / "t.csv"))
    ranker.save(folder / "m.placet")
    return folder


def test_one_table_and_one_command(placet_command, tickets):
    model = tickets / "again.placet"
    given = ["--param", "learning_rate=0.05", "--param", "epochs=20", "--out", model]
    _, err = placet_command("train", tickets / "t.csv", *OPTIONS, *given)
    assert "read as texts with labels: text, tags" in err
    assert "the best labels of each text" in err
    assert model.read_bytes() == (tickets / "m.placet").read_bytes()  # what Python gives


def test_names_of_labels_are_printed(placet_command, tickets):
    out, _ = placet_command("score", tickets / "m.placet", tickets / "new.csv", "--text", "body", "-k", "1")
    head, *lines = out.splitlines()
    assert head.split("\t") == ["document", "label", "score"]
    assert [line.split("\t")[:2] for line in lines] == [["1", "billing"], ["2", "refund"]]
    table = tickets / "best.csv"
    placet_command("score", tickets / "m.placet", tickets / "t.csv", "--out", table)
    assert len(table.read_text().splitlines()) == 1 + 60 * 2  # both labels, though -k is 5


def test_what_does_not_fit_is_refused(placet_command, tickets, tmp_path):
    (tmp_path / "two.csv").write_text('text,tags\nx y,"Doe, J; Roe, K"\n')
    train = ["train", tickets / "t.csv", *OPTIONS, "--out", tmp_path / "n"]
    two = ["train", tmp_path / "two.csv", *OPTIONS, "--out", tmp_path / "n"]
    for words, said in [
        (["score", tickets / "m.placet", tickets / "new.csv"], "column 'text' is not there"),
        ([*train, "--ranker", "trees"], "--ranker labels"),
        (["train", tickets / "t.csv", "--labels", "tags", "--out", tmp_path / "n"], "name their column with --text"),
        ([*train, "--text-param", "tokenizer=x"], "'tokenizer'"),
        ([*train, "--qid", "q"], "qid"),
        (two, f"{shlex.join(['placet', *map(str, two)])} --read delimiter=';'\n"),
    ]:
        assert said in placet_command(*words, code=2)[1]
    assert not (tmp_path / "n").exists()


def test_a_model_of_texts_is_verified(placet_command, tickets):
    assert "the same" in placet_command("verify", tickets / "m.placet", tickets / "t.csv")[1]
