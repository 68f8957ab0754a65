"""``placet verify model.placet train.letor``: the model is trained anew and compared."""

import numpy as np
import pytest

import placet
from placet.rank.ranker import RANKERS
from placet.rank.saving.retraining import differences_of_rankers, retrained


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("models")
    for name, seed in (("train", 1), ("other", 2)):
        placet.io.write(placet.simulate.queries(40, 6, 3, noise=0.3, random_state=seed), path / f"{name}.letor")
    return path


def test_a_model_is_what_its_rows_give(placet_command, folder, tmp_path):
    model, train, other = tmp_path / "model.placet", folder / "train.letor", folder / "other.letor"
    placet_command("train", train, "--valid", other, "--out", model)
    _, err = placet_command("verify", model, train, "--valid", other)
    assert "train.letor gives the LinearRanker of model.placet, to the last digit" in err
    out, err = placet_command("verify", model, train, code=1)
    assert "numbers differ, by up to" in out
    assert "give them with --valid" in err
    out, _ = placet_command("verify", model, other, "--valid", other, code=1)
    assert out.startswith("coef_: 3 of 3 numbers differ")
    _, err = placet_command("verify", model, train, other, code=2)
    assert "trained on one file, and 2 were given" in err


@pytest.mark.parametrize("name", ["linear", "trees", "coordinate"])
def test_every_number_of_a_model_is_compared(folder, tmp_path, name):
    rows = placet.read(folder / "train.letor")
    ranker = RANKERS[name]().fit(rows)
    ranker.save(tmp_path / "model.placet")
    loaded = placet.load(tmp_path / "model.placet")
    assert differences_of_rankers(loaded, retrained(loaded, rows), RANKERS) == ([], True)
    part = loaded.trees_.value if name == "trees" else loaded.coef_
    for size, same in ((1e-3, False), (1e-9, True)):
        kept = part.copy()
        writable = np.array(part)
        writable[np.argmax(np.abs(part))] *= 1 + size
        if name == "trees":
            object.__setattr__(loaded.trees_, "value", writable)
        else:
            loaded.coef_ = writable
        found, exact = differences_of_rankers(loaded, retrained(loaded, rows), RANKERS)
        assert (found == [], exact) == (same, False)
        part = kept


def test_options_of_models_are_refused_for_certificates(placet_command, folder, tmp_path):
    paper = tmp_path / "c.json"
    paper.write_text("{}")
    _, err = placet_command("verify", paper, folder / "train.letor", "--valid", folder / "other.letor", code=2)
    assert "--valid is for a model" in err
