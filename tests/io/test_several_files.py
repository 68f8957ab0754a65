"""Several files as one data set."""

import pytest

import placet
from placet.data import DataError
from placet.io import read_files, to_aggregate

VOTES = "model_a,model_b,winner\nx,y,model_a\ny,z,tie\n"


def run_file(path, tag, lists):
    rows = [f"{topic} Q0 {doc} {k + 1} {9 - k} {tag}" for topic, docs in lists.items() for k, doc in enumerate(docs)]
    path.write_text("\n".join(rows) + "\n")
    return path


def test_items_are_matched_by_name_and_notes_are_said_once(tmp_path):
    (tmp_path / "may.csv").write_text(VOTES)
    (tmp_path / "june.csv").write_text("left,right,winner,judge\nz,x,left,me\n")  # other columns, the same items
    files = [tmp_path / "may.csv", tmp_path / "june.csv", str(tmp_path / "may.csv")]
    data = read_files(files)
    assert data.items == ("x", "y", "z")
    assert data == placet.concat([placet.read(file) for file in files])
    assert len(data.notes) == 3
    assert data.notes[0] == "read as votes: model_a, model_b, winner"
    assert "column 'judge' may say who voted" in data.notes[2]
    assert data.notes[1].startswith("read as votes: left, right, winner; ignored: judge")


def test_one_file_is_what_read_returns(tmp_path):
    (tmp_path / "may.csv").write_text(VOTES)
    assert read_files([tmp_path / "may.csv"]) == placet.read(tmp_path / "may.csv")
    assert read_files([tmp_path / "may.csv"], "battles", items=["z", "y", "x"]).items == ("z", "y", "x")


def test_graded_rows_are_put_together_and_a_query_in_two_files_names_them(tmp_path):
    (tmp_path / "a.letor").write_text("1 qid:1 1:2\n0 qid:1 1:1\n")
    (tmp_path / "b.letor").write_text("1 qid:2 1:2\n0 qid:2 1:1\n")
    assert read_files([tmp_path / "a.letor", tmp_path / "b.letor"]).qid == (1, 2)
    with pytest.raises(DataError, match=r"a\.letor, .*a\.letor: query 1 is in parts 0 and 1"):
        read_files([tmp_path / "a.letor", tmp_path / "a.letor"])


def test_files_of_two_kinds_are_named(tmp_path):
    (tmp_path / "votes.csv").write_text(VOTES)
    (tmp_path / "ballots.txt").write_text("2: x > y\n")
    with pytest.raises(
        DataError,
        match=r"votes\.csv holds votes and .*ballots\.txt ballots; as sources of one fit: placet aggregate votes=",
    ):
        read_files([tmp_path / "votes.csv", tmp_path / "ballots.txt"])


def test_a_kind_that_has_no_sum_is_read_alone(tmp_path):
    (tmp_path / "q.qrels").write_text("1 0 d 1\n")
    assert len(read_files([tmp_path / "q.qrels"])) == 1
    with pytest.raises(DataError, match=r"q\.qrels: judgments cannot be read together with other files"):
        read_files([tmp_path / "q.qrels", tmp_path / "q.qrels"])


def test_a_bad_line_is_named_by_its_file(tmp_path):
    (tmp_path / "good.csv").write_text(VOTES)
    (tmp_path / "bad.csv").write_text(VOTES + "x,x,tie\n")
    with pytest.raises(DataError, match=r"bad\.csv:4: 'x' meets itself"):
        read_files([tmp_path / "good.csv", tmp_path / "bad.csv"])
    with pytest.warns(placet.io.DataWarning, match=r"bad\.csv: left out 1 line"):
        assert read_files([tmp_path / "good.csv", tmp_path / "bad.csv"], on_error="skip").ties.sum() == 2


def test_rank_lists_become_ballots_and_equal_tags_are_told_apart(tmp_path):
    (tmp_path / "lists.agg").write_text("0 qid:1 1:1 2:NULL #docid = a\n0 qid:1 1:2 2:1 #docid = b\n")
    assert isinstance(read_files([tmp_path / "lists.agg"]), placet.Rankings)
    one = run_file(tmp_path / "one.run", "run", {"401": "ab"})
    two = run_file(tmp_path / "two.run", "run", {"401": "ba"})
    other = run_file(tmp_path / "other.run", "lm", {"401": "ba"})
    data = read_files([one, two])
    assert data.agents == ("one.run", "two.run")
    assert data.notes[-1] == "several files have the tag 'run'; their runs are named after the files"
    assert read_files([one, other]).agents == ("run", "lm")


def test_what_cannot_be_aggregated_is_named(tmp_path):
    (tmp_path / "q.qrels").write_text("1 0 d 1\n")
    with pytest.raises(DataError, match="q: judgments cannot be aggregated; votes, ballots, ratings or scores can"):
        to_aggregate(placet.read(tmp_path / "q.qrels"), "q")
    (tmp_path / "votes.csv").write_text(VOTES)
    votes = placet.read(tmp_path / "votes.csv")
    assert to_aggregate(votes, "votes.csv") is votes
