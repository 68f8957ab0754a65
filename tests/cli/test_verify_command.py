"""``placet aggregate --certificate`` and ``placet verify``: 0 the same, 1 different, 2 cannot tell."""

import json
import shutil
import subprocess

import pytest

from placet.aggregate.proof.certificate import canonical, digest_of_entries

ROWS = [("x", "y", "model_a")] * 6 + [("y", "x", "model_a")] * 3 + [("y", "z", "model_b")] * 2 + [("x", "z", "tie")]


@pytest.fixture
def votes(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("\n".join(",".join(row) for row in [("left", "right", "won"), *ROWS]) + "\n")
    return path


@pytest.fixture
def paper(placet_command, votes, tmp_path):
    path = tmp_path / "board.cert.json"
    columns = ["--a", "left", "--b", "right", "--winner", "won"]
    _, err = placet_command("aggregate", votes, *columns, "-p", "prior=1", "--certificate", path)
    assert f"certificate: {path}" in err
    return path


def test_the_same_files_give_0(placet_command, votes, paper, tmp_path):
    out, err = placet_command("verify", paper, votes)
    assert out == ""
    assert "the same: bradley-terry ranks 3 items as board.cert.json says" in err
    assert "compared to the last digit" in err
    moved = shutil.copy(votes, tmp_path / "moved.csv")
    placet_command("verify", paper, moved)


def test_a_changed_score_gives_1_and_says_by_how_much(placet_command, votes, paper):
    made = json.loads(paper.read_text())
    made["answer"]["columns"]["score"][0] += 0.5
    made["digest"] = digest_of_entries(made)
    paper.write_bytes(canonical(made))
    out, _ = placet_command("verify", paper, votes, code=1)
    assert out.startswith("score of 'z': ")
    assert "a difference of 0.5" in out


def test_other_files_give_2_and_are_named(placet_command, votes, paper, tmp_path):
    other = tmp_path / "other.csv"
    other.write_text(votes.read_text().replace("tie", "model_a"))
    _, err = placet_command("verify", paper, other, code=2)
    assert "other.csv: not the file of the certificate, votes.csv" in err
    _, err = placet_command("verify", paper, votes, votes, code=2)
    assert "about 1 files (votes.csv), and 2 were given" in err
    _, err = placet_command("verify", votes, votes, code=2)
    assert "not a certificate" in err


@pytest.mark.parametrize("options", [{"source": "/etc/passwd"}, {"format": "x"}, {"path": "/etc/passwd"}, 3])
def test_no_other_file_is_read(placet_command, votes, paper, options):
    made = json.loads(paper.read_text())
    made["question"]["reading"] = {"format": "", "options": options}
    made["digest"] = digest_of_entries(made)
    paper.write_bytes(canonical(made))
    _, err = placet_command("verify", paper, votes, code=2)
    assert "root:" not in err


@pytest.mark.parametrize(
    "words",
    [["--by", "won"], ["--groups", "2"], ["--parts"]],
)
def test_what_has_no_certificate_is_refused(placet_command, votes, tmp_path, words):
    _, err = placet_command("aggregate", votes, "--certificate", tmp_path / "c.json", *words, code=2)
    assert "--certificate is for one board" in err
    assert not (tmp_path / "c.json").exists()


def test_a_signature_is_made_and_checked(placet_command, votes, tmp_path):
    keygen = shutil.which("ssh-keygen")
    if keygen is None:
        pytest.skip("ssh-keygen is not installed")
    key = tmp_path / "key"
    subprocess.run([keygen, "-q", "-t", "ed25519", "-N", "", "-f", str(key), "-C", "ann@example.org"], check=True)
    columns = ["--a", "left", "--b", "right", "--winner", "won"]
    paper = tmp_path / "signed.cert.json"
    placet_command("aggregate", votes, *columns, "--certificate", paper, "--sign", key)
    signers = tmp_path / "signers"
    kind, public = (tmp_path / "key.pub").read_text().split()[:2]
    signers.write_text(f"ann@example.org {kind} {public}\n")
    given = ["--signature", f"{paper}.sig", "--signers", signers]
    _, err = placet_command("verify", paper, votes, *given)
    assert "signed by ann@example.org" in err
    paper.write_bytes(paper.read_bytes().replace(b'"date":"20', b'"date":"19'))
    _, err = placet_command("verify", paper, votes, *given, code=2)
    assert "ssh-keygen" in err
