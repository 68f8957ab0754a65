"""LabelRanker on texts and names of labels: the features are scikit-learn's, names come back, files hold plain data."""

import json

import numpy as np
import pytest
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer

from placet import DataError
from placet.io import LabeledTexts
from placet.rank.multilabel.documents import label_matrix, named_labels
from placet.rank.multilabel.text_features import TextFeatures, texts_of

pytest.importorskip("torch", reason="PyTorch is not installed (pip install 'placet[neural]')")
pytestmark = pytest.mark.jit

from placet.rank import LabelRanker, load  # noqa: E402

TEXTS = ["red apple", "green apple tree", "red wine", "white wine glass", "apple wine", "red glass"] * 8
LABELS = [["fruit"], ["fruit", "plant"], ["drink"], ["drink"], ["drink", "fruit"], ["thing"]] * 8
SMALL = {"hidden": (), "learning_rate": 0.05, "epochs": 30, "batch": 16}


@pytest.fixture(scope="module")
def ranker():
    return LabelRanker(**SMALL).fit(TEXTS, LABELS)


@pytest.mark.parametrize(
    ("kind", "params", "peer"),
    [
        ("tfidf", {}, TfidfVectorizer(sublinear_tf=True, max_features=1 << 15, dtype=np.float32)),
        ("tfidf", {"use_idf": False, "ngram_range": [1, 2], "sublinear_tf": False},
         TfidfVectorizer(use_idf=False, ngram_range=(1, 2), dtype=np.float32)),
        ("hashing", {"n_features": 64}, HashingVectorizer(n_features=64, dtype=np.float32)),
        ("tfidf", {"analyzer": "char_wb", "ngram_range": (2, 3), "max_features": 20},
         TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 3), max_features=20, sublinear_tf=True, dtype=np.float32)),
    ],
)  # fmt: skip
def test_features_are_those_of_scikit_learn(kind, params, peer):
    found = TextFeatures.fit(kind, params, tuple(TEXTS))
    new = ("red tree", "unknown", "")
    expected = peer.fit(TEXTS).transform(new)
    np.testing.assert_array_equal(found.transform(new).toarray(), expected.toarray())
    assert found.n_features == expected.shape[1]


def test_names_come_back_and_survive_a_file(ranker, tmp_path):
    assert ranker.labels_ == ("drink", "fruit", "plant", "thing")
    assert ranker.predict(["red wine", "green tree"], k=1).tolist() == [["drink"], ["fruit"]]
    numbers = LabelRanker(**SMALL).fit(ranker.text_features(TEXTS), label_matrix(named_labels(LABELS))[0])
    np.testing.assert_array_equal(numbers.top(ranker.text_features(TEXTS)).score, ranker.top(TEXTS).score)
    ranker.save(tmp_path / "m.placet")
    again = load(tmp_path / "m.placet")
    np.testing.assert_array_equal(again.top(TEXTS).score, ranker.top(TEXTS).score)
    assert (again.labels_, again.words_, again.text_) == (ranker.labels_, ranker.words_, ("tfidf", None))
    assert again.predict(np.array(TEXTS[:2]), k=2).tolist() == ranker.predict(TEXTS[:2], k=2).tolist()


def test_hashing_learns_nothing_and_survives_a_file(tmp_path):
    hashed = LabelRanker(**SMALL, text="hashing", text_params={"n_features": 128}).fit(
        LabeledTexts(tuple(TEXTS), tuple(map(tuple, LABELS)), "words")
    )
    assert (hashed.words_, hashed.idf_, hashed.n_features_in_, hashed.text_) == (None, None, 128, ("hashing", "words"))
    hashed.save(tmp_path / "m.placet")
    np.testing.assert_array_equal(load(tmp_path / "m.placet").top(TEXTS).score, hashed.top(TEXTS).score)
    assert hashed.predict(["white wine"], k=1)[0, 0] == "drink"


def test_labels_that_the_ranker_does_not_know_count_as_not_found(ranker):
    texts, known = TEXTS[2:4], [["drink"], ["drink"]]
    assert ranker.evaluate(texts, known, ["p@1", "recall@1", "psp@1"]) == [1.0, 1.0, 1.0]
    more = [["drink"], ["drink", "news"]]
    precision, recall, by_propensity = ranker.evaluate(texts, more, ["p@1", "recall@1", "psp@1"])
    assert (precision, recall) == (1.0, 0.75)
    assert by_propensity < 1.0  # the unknown label is the rarest, so it would have been worth the most
    valid = LabelRanker(**SMALL).fit(TEXTS, LABELS, valid=(texts, more))
    assert valid.labels_ == ranker.labels_
    assert 0 < valid.fit_summary_["validation"] < 1


def test_training_continues_with_the_same_words_and_names(ranker):
    more = LabelRanker(**SMALL).fit(["white wine glass", "green apple"] * 10, [["drink"], ["fruit"]] * 10, start=ranker)
    assert (more.words_, more.labels_, more.text_) == (ranker.words_, ranker.labels_, ranker.text_)
    assert more.predict(["red wine"], k=1)[0, 0] == "drink"
    with pytest.raises(DataError, match=r"label 'new' is not among the labels of start \(1 such labels\)"):
        LabelRanker(**SMALL).fit(TEXTS, [[*own, "new"] for own in LABELS], start=ranker)


def test_grades_of_names_are_tiers():
    graded = [{name: 2.0 if name == "fruit" else 1.0 for name in own} for own in LABELS]
    matrix, names = label_matrix(named_labels(graded))
    assert matrix.toarray()[4].tolist() == [1.0, 2.0, 0.0, 0.0]
    assert names == ("drink", "fruit", "plant", "thing")
    assert LabelRanker(**SMALL).fit(TEXTS, graded).predict(["apple wine"], k=1)[0, 0] == "fruit"


@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        (["a", 3], [["x"], ["y"]], r"text 1 is 3, not a string \(1 such texts\)"),
        ("one text", ["x"], "give a list of texts"),
        (["a b", "c d"], [["x", 2], ["y"]], r"document 0: label 2 is not a name"),
        (["a b", "c d"], [["x", "x"], ["y"]], r"document 0: a label occurs more than once"),
        (["a", "b"], [["x"], ["y"]], "2 texts give no features: empty vocabulary"),
        (["ab", "cd"], [["x"]], "X has 2 documents and Y has 1"),
    ],
)
def test_what_is_refused(X, y, words):
    with pytest.raises(DataError, match=words):
        LabelRanker(**SMALL).fit(X, y)


def test_parameters_and_data_that_do_not_fit_are_refused(ranker):
    with pytest.raises(ValueError, match=r"parameter 'tokenizer' is unknown to the vectorizer 'tfidf'"):
        LabelRanker(text_params={"tokenizer": "x"}).fit(TEXTS, LABELS)
    with pytest.raises(ValueError, match="text"):
        LabelRanker(text="words").fit(TEXTS, LABELS)
    with pytest.raises(DataError, match="fitted on features, not on texts"):
        LabelRanker(**SMALL).fit(ranker.text_features(TEXTS), LABELS).predict(["red"])
    with pytest.raises(DataError, match="3 labels without names; the ranker has 4"):
        ranker.score(TEXTS[:2], np.ones((2, 3)))
    with pytest.raises(ValueError, match="hold their labels"):
        ranker.score(LabeledTexts(("red",)))


def test_a_damaged_file_is_refused(ranker):
    params, state = ranker.get_params(deep=False), ranker.saved_state()
    for change, words in [
        ({"words_": ranker.words_[1:]}, "names, not"),
        ({"words_": None}, "0 words"),
        ({"words_": ("a",) * len(ranker.words_)}, "name twice"),
        ({"labels_": ("a", "b")}, "2 names, not 4"),
        ({"labels_": (1, 2, 3, 4)}, "not names"),
        ({"idf_": ranker.idf_[1:]}, "shape"),
        ({"text_": ("hashing", None)}, "of kind 'hashing'"),
        ({"text_": ("pickle", None)}, "of kind 'pickle'"),
        ({"text_": "tfidf"}, "text_"),
    ]:
        with pytest.raises(DataError, match=words):
            LabelRanker.from_saved(params, state | change)


def test_onnx_holds_the_names(ranker, tmp_path):
    onnx = pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    ranker.to_onnx(tmp_path / "m.onnx")
    held = {one.key: json.loads(one.value) for one in onnx.load(tmp_path / "m.onnx").metadata_props}
    assert held == {"labels": list(ranker.labels_)}
    X = ranker.text_features(TEXTS[:6]).toarray().astype(np.float64)
    scores = runtime.InferenceSession(tmp_path / "m.onnx").run(None, {"X": X})[0]
    best = np.array(ranker.labels_, object)[np.argsort(-scores, axis=1, kind="stable")[:, :2]]
    assert best.tolist() == ranker.predict(TEXTS[:6], k=2).tolist()


def test_what_is_text():
    assert texts_of(np.eye(2)) is None
    assert texts_of([]) is None
    assert texts_of(np.array(["a", "b"])) == ("a", "b")
    assert named_labels(np.eye(2)) is None
    assert named_labels([None, "a", {"b"}]) == [{}, {"a": 1.0}, {"b": 1.0}]
