"""Texts as sparse features, by the vectorizers of scikit-learn; what a fit learns of them is plain data.

TF-IDF learns a vocabulary and a weight for each of its words; hashing learns nothing, and several words may share a
feature.
"""

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from placet.data import DataError
from placet.data.arrays import Floats
from placet.data.parameters import check_names
from placet.io import LabeledTexts

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

TextKind = Literal["tfidf", "hashing"]
MOST_FEATURES = 1 << 15
DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "tfidf": {"sublinear_tf": True, "max_features": MOST_FEATURES},
    "hashing": {"n_features": MOST_FEATURES},
}
"""Where Placet's defaults differ from scikit-learn's: each feature is a row of weights of a network."""

OF_FILES = ("input", "encoding", "decode_error", "dtype", "vocabulary")
OF_CODE = ("preprocessor", "tokenizer", "token_pattern")
"""Parameters of the vectorizers that cannot be given: functions and patterns, which a loaded file must not bring."""


@dataclass(frozen=True)
class TextFeatures:
    """A fitted vectorizer: ``words`` and ``idf`` of "tfidf"; both None for "hashing"."""

    kind: TextKind
    params: Mapping[str, Any]
    words: tuple[str, ...] | None = None
    idf: Floats | None = None

    @classmethod
    def fit(cls, kind: TextKind, params: Mapping[str, Any], texts: "tuple[str, ...]") -> "TextFeatures":
        """Learn the vocabulary of these texts."""
        vectorizer = vectorizer_of(kind, params)
        try:
            vectorizer.fit(texts)
        except ValueError as error:  # of scikit-learn: a parameter beyond its range, or texts without a word
            raise DataError(f"{len(texts)} texts give no features: {error}") from None
        if kind == "hashing":
            return cls(kind, params)
        idf = np.array(vectorizer.idf_, np.float64) if vectorizer.use_idf else None
        return cls(kind, params, tuple(map(str, vectorizer.get_feature_names_out())), idf)

    def transform(self, texts: "tuple[str, ...]") -> "csr_matrix":
        """The features (texts, features) of texts, float32."""
        from scipy.sparse import csr_matrix

        vectorizer = vectorizer_of(self.kind, self.params, self.words)
        if self.idf is not None:
            vectorizer.idf_ = self.idf
        elif self.kind == "tfidf":
            vectorizer.fit([""])  # without idf there is nothing to learn
        return csr_matrix(vectorizer.transform(texts))

    @property
    def n_features(self) -> int:
        """The number of features."""
        return int(vectorizer_of("hashing", self.params).n_features) if self.words is None else len(self.words)


def vectorizer_of(kind: TextKind, params: Mapping[str, Any], words: tuple[str, ...] | None = None) -> Any:
    """The vectorizer of scikit-learn with these parameters, and these words as its vocabulary."""
    from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer

    home = TfidfVectorizer if kind == "tfidf" else HashingVectorizer
    known = [name for name in inspect.signature(home).parameters if name not in (*OF_FILES, *OF_CODE)]
    check_names(params, known, f"the vectorizer {kind!r} (text_params)")
    given = {**DEFAULTS[kind], **params}
    given = {name: tuple(value) if isinstance(value, list) and name == "ngram_range" else value
             for name, value in given.items()}  # fmt: skip
    return home(**given, dtype=np.float32, **({} if words is None else {"vocabulary": words}))


def texts_of(X: Any) -> tuple[str, ...] | None:
    """The texts, if ``X`` is texts: a list, an array or a column of strings, or ``LabeledTexts``.

    >>> texts_of(["a b", "c"]), texts_of([[1.0, 2.0]])
    (('a b', 'c'), None)
    """
    if isinstance(X, LabeledTexts):
        return X.texts
    if isinstance(X, str):
        raise DataError(f"give a list of texts, not the text {X!r:.40}")
    if hasattr(X, "tocsr") or getattr(X, "ndim", 1) != 1 or not isinstance(X, Iterable):
        return None
    cells = list(X)
    text = [isinstance(cell, str) for cell in cells]
    if not any(text):
        return None
    if not all(text):
        at = text.index(False)
        raise DataError(f"text {at} is {cells[at]!r:.40}, not a string ({text.count(False)} such texts); give a string")
    return tuple(map(str, cells))
