"""Model files: sealed, checked against what each class states, and never more than an error when they are damaged."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from ranker_cases import CASES, fitted, rows
from safetensors import safe_open
from sklearn.base import clone

import placet
from placet.data import DataError
from placet.data.parameters import matches
from placet.rank import RANKERS, LinearRanker
from placet.rank.ranker import Ranker
from placet.rank.saving import file_format
from placet.rank.saving.fitted_state import Array, Number, check_state, fitted_attributes, holds

pytestmark = pytest.mark.jit
FUZZ = Path(__file__).parents[3] / "fuzz" / "fuzz_models.py"
TRAIN = placet.simulate.queries(12, 5, 3, noise=0.5, random_state=3)


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "m.placet"
    LinearRanker("pmop-fd").fit(TRAIN).save(path)
    return path


@pytest.mark.parametrize("name", RANKERS)
def test_every_class_states_what_it_holds(name):
    """A class without a statement cannot be checked: ``fitted_attributes`` says how to write one."""
    assert set(fitted_attributes(RANKERS[name])) >= {"n_features_in_", "features_", "fit_summary_"}


def test_a_class_without_a_statement_is_told_how_to_write_one(tmp_path):
    class Old(LinearRanker):
        _state = ("coef_",)

    with pytest.raises(TypeError, match=r"Old._state must say what each fitted attribute is, such as holds\(coef_="):
        Old().fit(TRAIN).saved_state()


def test_the_digest_covers_every_byte(saved):
    data = saved.read_bytes()
    for at in range(len(data)):
        changed = bytearray(data)
        changed[at] ^= 1
        saved.write_bytes(changed)
        with pytest.raises(DataError, match="m.placet: "):
            placet.load(saved)
    for cut in (data[:-1], data + b"\0", data[:8], b""):
        saved.write_bytes(cut)
        with pytest.raises(DataError):
            placet.load(saved)
    saved.with_name("again").write_bytes(data)
    with safe_open(saved.with_name("again"), framework="numpy") as file:
        assert len(file.keys()) == 4  # it stays a file that others can read


def header_of(data):
    length = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def with_header(outer, rest):
    text = json.dumps(outer).encode()
    return file_format.seal(len(text).to_bytes(8, "little") + text + rest)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda o: o["0/coef_"].update(shape=[2**61, 8]), "has 24 bytes, not"),
        (lambda o: o["0/coef_"].update(shape=[-3]), "describes no array"),
        (lambda o: o["0/coef_"].update(shape=[True, 3]), "describes no array"),
        (lambda o: o["0/coef_"].update(dtype="F16"), "describes no array"),
        (lambda o: o["0/coef_"].update(data_offsets=[8, 32]), "does not follow|belong to none"),
        (lambda o: o.update(more={"dtype": "U8", "shape": [0], "data_offsets": [0, 0]}), "belong to no ranker"),
        (lambda o: o.update({str(k): {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]} for k in range(10_001)}), "10,0.. arrays"),
        (lambda o: o["__metadata__"].update(placet=o["__metadata__"]["placet"][:-1] + ', "x": ' + "[" * 41 + "]" * 41 + "}"), "nested more than 40 deep"),
        (lambda o: o["__metadata__"].update(placet=o["__metadata__"]["placet"][:-1] + ', "x": ' + "[" * 9000 + "]" * 9000 + "}"), "not a saved model"),
        (lambda o: o["__metadata__"].update(placet=o["__metadata__"]["placet"][:-1] + ', "x": [' + "[]," * 200_000 + "[]]}"), "values"),
        (lambda o: o["__metadata__"].update(placet=o["__metadata__"]["placet"][:-1] + ', "format": 2}'), "twice"),
        (lambda o: o["__metadata__"].update(placet=o["__metadata__"]["placet"][:-1] + ', "x": NaN}'), "is not a JSON number"),
        (lambda o: o["__metadata__"].update(placet=o["__metadata__"]["placet"][:-1] + ', "x": 1e999}'), "is not a JSON number"),
        (lambda o: o["__metadata__"].update(placet=o["__metadata__"]["placet"][:-1] + ', "x": ' + "9" * 5000 + "}"), "damaged"),
    ],
)  # fmt: skip
def test_crafted_headers_with_a_right_digest_are_refused(saved, change, words):
    outer, rest = header_of(saved.read_bytes())
    change(outer)
    saved.write_bytes(with_header(outer, rest))
    with pytest.raises(DataError, match=words):
        placet.load(saved)


def test_a_file_whose_last_ranker_is_not_fitted_is_refused(saved):
    RANKERS["listwise"](LinearRanker()).fit(TRAIN).save(saved)
    outer, rest = header_of(saved.read_bytes())
    inner = json.loads(outer["__metadata__"]["placet"])
    inner["rankers"][-1]["state"] = None
    outer["__metadata__"]["placet"] = json.dumps(inner)
    saved.write_bytes(with_header(outer, rest))
    with pytest.raises(DataError, match="it is not fitted"):
        placet.load(saved)


def test_a_long_header_and_what_is_no_file_are_refused(saved):
    saved.write_bytes(
        (file_format.LONGEST_HEADER + 1).to_bytes(8, "little") + b"{" + b" " * (file_format.LONGEST_HEADER + 9)
    )
    with pytest.raises(DataError, match="its header has 67,108,865 bytes"):
        placet.load(saved)
    saved.unlink()
    os.mkfifo(saved)  # nobody writes to it
    with pytest.raises(DataError, match="not a regular file"):
        placet.load(saved)


@pytest.mark.parametrize("name", CASES)
def test_every_array_is_checked_for_type_shape_range_and_finiteness(name, tmp_path):
    path = tmp_path / "m"
    fitted(name).save(path)
    header, arrays = file_format.read(path)
    assert arrays
    for key, array in arrays.items():
        wrong = [
            array.astype(np.int16 if array.dtype.kind == "f" else np.float32),
            array[None],
            np.append(array.ravel(), array.ravel()[:1]),
        ]
        if array.dtype.kind == "f" and array.size:
            wrong += [
                np.where(np.arange(array.size).reshape(array.shape) == array.size - 1, value, array).astype(array.dtype)
                for value in (np.nan, np.inf)
            ]
        for other in wrong:
            if array.size == 0 and other.shape == array.shape and other.dtype == array.dtype:
                continue
            file_format.write(path, header, {**arrays, key: other})
            with pytest.raises(DataError):
                placet.load(path)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"coef_": np.zeros(3, np.float32)}, "coef_ of a Ranker is float32, not an array of float64"),
        ({"coef_": np.zeros(2)}, r"coef_ of a Ranker has shape \(2,\), not \(3,\)"),
        ({"coef_": np.array([0.0, np.nan, 1.0])}, "holds 1 numbers that are not finite"),
        ({"n_": -1}, "n_ of a Ranker is -1, not between 0 and inf"),
        ({"n_": True}, "is bool, not a whole number"),
        ({"n_": 2.0}, "is float, not a whole number"),
        ({"features_": ("a", "b")}, "are 2 names for 3 features"),
        ({"n_features_in_": -3}, "is -3, not between"),
        ({"fit_summary_": {}}, "interrupted"),
        ({"more": 1}, "the state of a Ranker is"),
    ],
)
def test_a_statement_refuses_in_words(values, words, monkeypatch):
    monkeypatch.setattr(Ranker, "_state", holds(coef_=Array("features"), n_=Number(low=0, whole=True)))
    good = {
        "n_features_in_": 3,
        "features_": None,
        "fit_summary_": {"interrupted": False},
        "coef_": np.zeros(3),
        "n_": 0,
    }
    check_state(Ranker, good)
    with pytest.raises(DataError, match=words):
        check_state(Ranker, {**good, **values})


def test_parameters_are_those_that_their_annotations_name(saved):
    for name, value in {
        "l2": "much",
        "max_iter": 2.5,
        "standardize": 1,
        "loss": 3,
        "loss_params": [1],
        "metric": None,
    }.items():
        header, arrays = file_format.read(saved)
        header["rankers"][0]["params"][name] = value
        file_format.write(saved.with_name("n"), header, arrays)
        with pytest.raises(DataError, match=f"{name}=.* is not a parameter of a LinearRanker"):
            placet.load(saved.with_name("n"))
    assert matches(2.0, int, saved=True)
    assert not matches("x", int, saved=True)


def test_what_cannot_be_loaded_is_not_saved(tmp_path):
    ranker = clone(LinearRanker()).fit(TRAIN)
    ranker.coef_[0] = np.nan
    with pytest.raises(
        ValueError, match="cannot be saved.*coef_ of a LinearRanker holds 1 numbers that are not finite"
    ):
        ranker.save(tmp_path / "m")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("seal", ["as-is", "sealed"])
def test_mutated_files_are_answered_or_refused(tmp_path, seal):
    """Some hundred mutations of one file of each kind, in a process of their own; fuzz/fuzz_models.py makes many."""
    for name in CASES:
        fitted(name).save(tmp_path / name)
    tables = {name: getattr(rows(name), "X", rows(name))[:4] for name in CASES}
    np.savez(tmp_path / "rows.npz", **{name: X.toarray() if hasattr(X, "toarray") else X for name, X in tables.items()})
    words = [sys.executable, str(FUZZ), "--files", str(tmp_path), "--rows", str(tmp_path / "rows.npz")]
    words += ["--mutations", "60", f"--{seal}"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


def _load_then(spoil):
    """placet.load, which does something wrong with every file but the first that it is given."""
    load, calls = placet.load, []

    def loaded(path):
        calls.append(path)
        return load(path) if len(calls) == 1 else spoil(path)

    return loaded


def _endless(_):
    while True:
        pass


WRONG = {
    "exit code -9": lambda _: os.kill(os.getpid(), 9),
    "hang: more than": _endless,
    "load: KeyError": lambda _: {}["key"],
    "memory: ": lambda path: np.ones(1 << 23).sum() and LinearRanker(),
    "load: MemoryError": lambda _: np.empty(1 << 30),
    "load: its bytes are not those that were written": lambda _: LinearRanker(),
}


@pytest.mark.parametrize("words", WRONG)
def test_the_fuzzer_sees_every_failure(words, saved, monkeypatch):
    monkeypatch.syspath_prepend(FUZZ.parent)
    import fuzz_models

    if WRONG[words] is _endless:
        monkeypatch.setattr(fuzz_models, "LONGEST", 0.2)
    monkeypatch.setattr(placet, "load", _load_then(WRONG[words]))
    counts, bad = fuzz_models.fuzz(saved.read_bytes(), None, 2, sealed=False)
    assert counts == {"BAD": 2}
    assert [number for number, _ in bad] == [0, 1]
    assert all(words in what for _, what in bad)
