"""Certificates: the same data give the same answer, and every change is found.

The variable PLACET_CHANGES is the number of random changes (120 unless given; `make certificates` makes 10,000).
"""

import copy
import json
import os

import numpy as np
import pytest

import placet
from placet.aggregate.proof import verification
from placet.aggregate.proof.certificate import canonical, digest_of_entries, parse_certificate, read_certificate

CHANGES = int(os.environ.get("PLACET_CHANGES", "120"))


def votes(seed=0, size=60):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 5, size)
    b = (a + rng.integers(1, 5, size)) % 5
    outcome = rng.choice(["a", "b", "tie"], size, p=[0.5, 0.35, 0.15])
    return [f"item {k}" for k in a], [f"item {k}" for k in b], outcome.tolist()


def board(**params):
    data = placet.Comparisons.from_battles(*votes())
    return data, placet.consensus(data, **params)


def leaves(value, path=()):
    """Paths of all numbers, texts and truth values."""
    if isinstance(value, dict):
        return [leaf for name, one in value.items() for leaf in leaves(one, (*path, name))]
    if isinstance(value, list):
        return [leaf for k, one in enumerate(value) for leaf in leaves(one, (*path, k))]
    return [path]


def changed(certificate, path, rng):
    """A copy with another value at the path, of the same type if there is one."""
    other = copy.deepcopy(certificate)
    inside = other
    for name in path[:-1]:
        inside = inside[name]
    old = inside[path[-1]]
    if isinstance(old, bool):
        new = not old
    elif isinstance(old, int):
        new = old + int(rng.choice([-1, 1, 10]))
    elif isinstance(old, float):
        new = float(np.nextafter(old, np.inf)) if rng.random() < 0.5 else old * (1 + rng.normal() * 0.01) + 1e-9
    elif isinstance(old, str):
        new = (
            old[: len(old) // 2]
            + ("y" if old[len(old) // 2 : len(old) // 2 + 1] == "x" else "x")
            + old[len(old) // 2 + 1 :]
        )
    else:
        new = 1
    inside[path[-1]] = new
    return other


def is_found(certificate, data):
    """Whether a verification ends with differences, or with an error in words: it cannot be told."""
    try:
        return bool(placet.verify(certificate, data))
    except ValueError:
        return True


@pytest.mark.parametrize(
    "params", [{}, {"method": "borda"}, {"method": "bradley-terry", "bootstrap": 20, "prior": 1.0}]
)
def test_the_same_data_give_the_same_answer(params):
    data, result = board(**params)
    made = parse_certificate(canonical(result.certificate(fragility=params.get("method") == "borda")), "here")
    assert placet.verify(made, data) == []
    rows = list(zip(*votes()))[::-1]
    again = placet.Comparisons.from_battles(*zip(*rows), items=data.items)
    assert placet.verify(made, again) == []
    assert canonical(made) == canonical(json.loads(canonical(made)))


def test_every_change_of_an_entry_is_found():
    data, result = board(method="borda", random_state=1)
    made = result.certificate(fragility=False)
    paths, rng = leaves(made), np.random.default_rng(5)
    for k in range(CHANGES):
        path = paths[k % len(paths)] if k < len(paths) else paths[rng.integers(len(paths))]
        assert is_found(changed(made, path, rng), data), path


def test_a_change_of_the_answer_is_found_though_the_digest_is_made_anew():
    data, result = board()
    made = result.certificate(fragility=False)
    paths = [path for path in leaves(made) if path[0] == "answer" and path[1] != "fragility"]
    rng = np.random.default_rng(6)
    for k in range(max(CHANGES // 4, 30)):
        other = changed(made, paths[rng.integers(len(paths))], rng)
        other["digest"] = digest_of_entries(other)
        assert is_found(other, data), k


def test_a_change_of_one_vote_is_found():
    a, b, outcome = votes()
    data, result = board()
    made = result.certificate(fragility=False)
    rng = np.random.default_rng(7)
    for _ in range(max(CHANGES // 4, 30)):
        other, k = list(outcome), int(rng.integers(len(a)))
        other[k] = str(rng.choice([one for one in ("a", "b", "tie") if one != outcome[k]]))
        with pytest.raises(placet.DataError, match="other data"):
            placet.verify(made, placet.Comparisons.from_battles(a, b, other, items=data.items))


def test_a_change_of_an_option_that_matters_is_found():
    data, result = board(method="bradley-terry", prior=1.0)
    for name, value in (("prior", 1.1), ("ties", "none"), ("stderr", None)):
        other = result.certificate(fragility=False)
        other["question"]["params"][name] = value
        other["digest"] = digest_of_entries(other)
        assert placet.verify(other, data), name


def test_elsewhere_numbers_agree_to_the_tolerance():
    data, result = board(method="borda")
    made = result.certificate()
    made["made_with"]["numpy"] = "1.0"
    near, far = copy.deepcopy(made), copy.deepcopy(made)
    near["answer"]["columns"]["score"][0] *= 1 + 1e-8
    far["answer"]["columns"]["score"][0] *= 1 + 1e-4
    for one in (made, near, far):
        one["digest"] = digest_of_entries(one)
    assert placet.verify(made, data) == placet.verify(near, data) == []
    (said,) = placet.verify(far, data)
    assert said.startswith("score of ")
    assert "a difference of" in said
    assert "numpy 1.0 there" in verification.platform_words(made)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "not a certificate"),
        (b"[1, 2]", "is list, not an object"),
        (b'{"certificate": 1}', "lacks"),
        (b'{"certificate": 99}', "version 99"),
        (b'{"a": NaN}', "NaN is not a number of JSON"),
        (b'{"a": 1e999}', "beyond floating-point"),
        (b'{"a": 1, "a": 2}', "occurs twice"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"a": "\xff"}', "not a certificate"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not a certificate"),
    ],
)
def test_what_is_no_certificate_is_said(text, words, tmp_path):
    path = tmp_path / "board.cert.json"
    path.write_bytes(text)
    with pytest.raises(placet.DataError, match=words):
        read_certificate(path)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("question", "method"), "no such"),
        (("question", "method"), "irv"),
        (("question", "method"), "sources"),
        (("question", "params"), {"start": "/etc/passwd"}),
        (("question", "params"), {"engine": "x"}),
        (("question", "params"), {"prior": "x"}),
        (("question", "params"), {"prior": [1]}),
        (("question", "params"), {"agent_weight": {"x": "y"}}),
        (("question", "level"), 7),
        (("question", "bootstrap"), -3),
        (("question", "bootstrap"), 10**12),
        (("question", "random_state"), -1),
        (("answer", "columns"), {"item": [[1]]}),
        (("answer", "columns"), {}),
        (("answer", "fragility"), {"claims": 5}),
        (("made_with",), {}),
        (("data", "kind"), 3),
    ],
)
def test_crafted_entries_are_found_or_refused_in_words(path, value):
    data, result = board(method="bradley-terry")
    made = result.certificate(fragility=False)
    inside = made
    for name in path[:-1]:
        inside = inside[name]
    inside[path[-1]] = value
    if path != ("made_with",):
        made["digest"] = digest_of_entries(made)
    assert is_found(made, data)


def test_results_without_their_data_have_no_certificate():
    data, result = board()
    with pytest.raises(ValueError, match="does not hold its data"):
        result.in_points().certificate()
    with pytest.raises(ValueError, match="cannot hold"):
        placet.consensus(data, "bradley-terry", agent_weight=None, prior=1.0).certificate(reading={"x": object()})
