"""Extreme multi-label ranking: a document's labels rank all labels into tiers.

Every loss in ``LOSSES`` accepts the whole (documents, labels) table, each row as a list.  If the lowest tier enters a
loss only through its log-sum-exp (``sums_lowest_tier`` of its record), a single row represents all labels that a
document does not have: a list then has a row per own label plus this one, whose gradient is distributed over the labels
it represents by their softmax.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from placet.data import DataError, Lists, Queries
from placet.data.arrays import Floats, Ints, numbers
from placet.data.engines.memory import refuse_table
from placet.io import LabeledTexts, MultiLabel
from placet.metrics import metric as metric_of, propensities
from placet.rank.multilabel.best_labels import Top, best_labels, means_over_documents
from placet.rank.multilabel.documents import Documents, as_documents, checked_features, label_matrix, named_labels
from placet.rank.multilabel.feature_units import FeatureUnits, is_words
from placet.rank.multilabel.label_losses import mean_loss, sampled_loss
from placet.rank.multilabel.schedule import APART, LABEL_SHARE, RATE, RATES, schedule_for
from placet.rank.multilabel.text_features import TextFeatures, TextKind, texts_of
from placet.rank.ranker import Ids, Ranker
from placet.rank.saving.fitted_state import Array, Learned, Maybe, NamesOf, Number, TupleOf, holds
from placet.rank.saving.onnx_export import OnnxGraph, add_network
from placet.rank.torch import neural
from placet.rank.torch.network import (
    Layer,
    Weights,
    as_input,
    check_network,
    first_weights,
    forward,
    layers,
    network_scores,
    orthogonal,
    widths,
)
from placet.rank.torch.neural import Criterion, Training, check_positive
from placet.rank.validation import Best

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

FEWER = "give fewer documents at a time, or ask for their best labels (top)"
MORE_RATES = 2  # learning rates tried beyond those given, if the best is the first or the last of three or more
LARGE = 100_000  # documents from which a tenth is enough for validation


class LabelRanker(Ranker):
    """A network that scores every label for a document, fitted to rank a document's own labels above the others.

    ``fit(X, Y)`` accepts features (documents, features) and grades (documents, labels), CSR matrices, or
    ``MultiLabel``; stored grades are above 0, and distinct grades give more than two tiers.  Documents may also be
    texts, and labels names: of each document a list of names, a mapping of names to grades, or one name; ``predict``
    then returns names.  ``pl-partition`` is the
    exact likelihood that all own labels come before all others.  No pairs are stored.  Documents with all labels in
    one tier, or with none, are uninformative and left out of training (``fit_summary_["left_out"]``); documents without
    features are scored by the biases alone.  Results are bit-for-bit reproducible for the same ``random_state`` and
    number of PyTorch threads.

    Parameters
    ----------
    loss : str
        A name in ``LOSSES``.
    hidden : int or sequence of int
        Widths of the hidden layers; () is a linear network.
    learning_rate : float or sequence of float, optional
        Learning rate of Adam; of several, the best on validation is kept.  If the best of three or more is the smallest
        or the largest, up to two beyond it are tried.  By default 0.0001, 0.001 and 0.01; for words and other sparse
        features 0.003 alone, and the network is then a running mean of the weights, in which late ones count most;
        with at most two labels for a unit of the last hidden layer, their vectors start orthogonal and have 0.3 of it.
    l2 : float
        Penalty on the weights.
    batch : int, optional
        Documents per batch; by default 128, or fewer if an epoch would have less than 20 batches.
    epochs : int
        Maximum number of passes over the documents.
    patience : int, optional
        Stop after this many epochs without a better ``metric``; the best epoch is kept.  By default 5, or more, so that
        they have 300 batches; for a running mean 2, or more, so that they have 3,840 documents, and a rise by a third
        of a standard error is none.
    validation : float, optional
        Fraction of the documents to hold out if ``fit`` has no validation set; by default a quarter, or a tenth of
        100,000 and more.  With the best rate and number of epochs, the network is then fitted to all documents.
    metric : str
        Validation metric.
    negatives : int, optional
        Score only the labels of the batch and this many others, drawn uniformly, and update only their weights.
        For ``pl-partition`` and ``pl-lower-bound`` each drawn label represents (others / negatives) labels: the sum
        over the others is then unbiased, but its logarithm is too small by about half its relative variance, so own
        labels are pushed up slightly too little.  Other losses use the shorter list as is, in which labels frequent in
        the batch are overrepresented among the others.
    standardize : bool
        Train on features of mean 0 and deviation 1 where at least half of them are stored, as in a table of
        measurements.  Words and other sparse features stay as they are, or, without a ``learning_rate``, are all
        multiplied by one number that gives rows of 60 words and of TF-IDF the same length.
    text : {"tfidf", "hashing"}
        How texts become features, by scikit-learn: a vocabulary with inverse document frequencies, or hashed words.
    text_params : mapping, optional
        Parameters of scikit-learn's ``TfidfVectorizer`` or ``HashingVectorizer``; by default ``sublinear_tf=True`` and
        ``max_features=32768``, or ``n_features=32768``, and else scikit-learn's.  Functions and patterns
        (``tokenizer``, ``token_pattern``, ...) are not taken, as a saved file must not bring any.
    loss_params : mapping, optional
        Parameters of the loss.
    random_state : int
        Seed of the split, the initial weights, the batches and the draws.

    >>> from scipy.sparse import csr_matrix
    >>> X = csr_matrix(np.tile(np.eye(4), (50, 1)))
    >>> Y = csr_matrix(np.tile([[1, 1, 0, 0, 0], [0, 1, 1, 0, 0], [0, 0, 1, 1, 0], [0, 0, 0, 1, 1]], (50, 1)))
    >>> ranker = LabelRanker(hidden=(16,), learning_rate=1e-2, batch=8).fit(X, Y)
    >>> np.sort(ranker.predict(X[:4], k=2)).tolist()
    [[0, 1], [1, 2], [2, 3], [3, 4]]
    """

    learns_from = "labels"
    _units: FeatureUnits | None = None  # of the features in training
    _averages = False  # whether the network is a mean of the weights in training
    takes_start = True
    _state = holds(
        weights_=Array("weights", dtype="float32"),
        sizes_=Array("layers", dtype="int64", low=0),
        learned_=Learned(),
        label_counts_=Array("labels", dtype="int64", low=0),
        n_documents_=Number(low=0, whole=True),
        labels_=Maybe(NamesOf("labels")),
        text_=Maybe(TupleOf(((str,), (str, None)))),
        words_=Maybe(NamesOf("features")),
        idf_=Maybe(Array("features", low=0.0)),
    )

    def __init__(
        self,
        loss: str = "pl-partition",
        hidden: int | Sequence[int] = (256,),
        *,
        learning_rate: float | Sequence[float] | None = None,
        l2: float = 0.0,
        batch: int | None = None,
        epochs: int = 100,
        patience: int | None = None,
        validation: float | None = None,
        metric: str = "ndcg@5",
        negatives: int | None = None,
        standardize: bool = True,
        text: TextKind = "tfidf",
        text_params: Mapping[str, Any] | None = None,
        loss_params: Mapping[str, Any] | None = None,
        random_state: int = 0,
    ) -> None:
        self.loss = loss
        self.hidden = hidden
        self.learning_rate = learning_rate
        self.l2 = l2
        self.batch = batch
        self.epochs = epochs
        self.patience = patience
        self.validation = validation
        self.metric = metric
        self.negatives = negatives
        self.standardize = standardize
        self.text = text
        self.text_params = text_params
        self.loss_params = loss_params
        self.random_state = random_state

    def _training_data(self, X: Any, y: Any, qid: Ids | None, weight: ArrayLike | None) -> Documents:
        self._check()
        if qid is not None or weight is not None:
            raise ValueError("every document is a list of its own: give X and y alone, without qid and weight")
        self._learn_names(X, y)
        data = self._as_documents(X, y)
        self.n_features_in_, self.features_ = data.X.shape[1], None
        return data

    def _learn_names(self, X: Any, y: Any) -> None:
        """Learn the vocabulary of texts and the names of labels, if there are any."""
        self.labels_: tuple[str, ...] | None = None
        self.text_: tuple[TextKind, str | None] | None = None
        self.words_: tuple[str, ...] | None = None
        self.idf_: Floats | None = None
        texts, named = texts_of(X), named_labels(X.labels if isinstance(X, LabeledTexts) else y)
        if isinstance(self._start, LabelRanker):
            self.labels_, self.text_ = self._start.labels_, self._start.text_
            self.words_, self.idf_ = self._start.words_, self._start.idf_
            unknown = sorted({name for own in named or () for name in own} - set(self.labels_ or ()))
            if unknown:
                raise DataError(
                    f"label {unknown[0]!r} is not among the labels of start ({len(unknown)} such labels); leave them "
                    "out, or fit without start"
                )
            return
        if texts is not None:
            found = TextFeatures.fit(self.text, self.text_params or {}, texts)
            self.text_ = self.text, X.column if isinstance(X, LabeledTexts) else None
            self.words_, self.idf_ = found.words, found.idf
        if named is not None:
            self.labels_ = label_matrix(named)[1]

    def _as_documents(self, X: Any, y: Any) -> Documents:
        """Documents of features and labels, or of texts and names; labels unknown to the ranker come last."""
        if isinstance(X, LabeledTexts):
            if y is not None or X.labels is None:
                raise ValueError("LabeledTexts hold their labels; give them alone, and with labels")
            y = X.labels
        if self.labels_ is None:
            return as_documents(self._features(X), y)
        named = named_labels(y)
        data = as_documents(self._features(X), y if named is None else label_matrix(named, self.labels_)[0])
        if named is None and data.Y.shape[1] != len(self.labels_):
            raise DataError(
                f"these documents have {data.Y.shape[1]} labels without names; the ranker has {len(self.labels_)}"
            )
        return data

    def _features(self, X: Any) -> Any:
        """``X``, or the features of its texts."""
        texts = texts_of(X)
        return X if texts is None else self.text_features(texts)

    def text_features(self, texts: Sequence[str]) -> "csr_matrix":
        """The features (documents, features) of texts, as the network sees them."""
        if self.text_ is None:
            raise DataError("the ranker was fitted on features, not on texts; give features")
        return self._vectorizer().transform(tuple(texts))

    def _vectorizer(self) -> TextFeatures:
        assert self.text_ is not None
        return TextFeatures(self.text_[0], self.text_params or {}, self.words_, self.idf_)

    def _validation_data(self, valid: Any, data: Documents) -> Documents:
        held_out = self._as_documents(*(valid if isinstance(valid, tuple) else (valid, None)))
        held_out.refuse_unlike(data, named=self.labels_ is not None)
        return held_out

    def _fit(self, data: Documents, valid: Documents | None) -> None:
        self._averages = self.learning_rate is None and is_words(data.X)
        self._units = FeatureUnits.of(data.X) if self.standardize else None
        if self._averages and self.standardize:
            self._units = FeatureUnits.of_words(data.X)
        if self._units is not None:
            data, valid = self._units.apply(data), None if valid is None else self._units.apply(valid)
        train, held_out = data, valid
        if held_out is None:
            train, held_out = data.split(self._share(len(data)), np.random.default_rng(self.random_state))
        useful = train.useful()
        if not useful.any() or not held_out.has_labels().any():
            raise DataError(
                f"{int(useful.sum())} of {len(train)} documents for training have labels above others, and "
                f"{int(held_out.has_labels().sum())} of {len(held_out)} for validation have labels; both need some"
            )
        self.n_documents_ = len(data)
        self.label_counts_ = np.bincount(data.Y.indices, minlength=data.Y.shape[1])
        self.sizes_ = np.array([data.X.shape[1], *widths(self.hidden), data.Y.shape[1]])
        best, tried = self._search(train[np.flatnonzero(useful)], held_out)
        training = final = best.state
        neural.refuse_diverged(training)
        if not best.interrupted:
            self._say_untrained(training.best.quality, train, held_out)
        interrupted, left_out = best.interrupted, int((~useful).sum())
        if valid is None and not interrupted:
            every = data.useful()
            again = self._train(data[np.flatnonzero(every)], None, training.learning_rate, training.best.best_step)
            interrupted = again.best.interrupted
            if not (interrupted or again.diverged):
                final, left_out = again, int((~every).sum())
        self.weights_, self.learned_ = final.weights, final.learned
        if self._units is not None:
            self.weights_ = self._units.to_own(final.weights, self.sizes_.tolist())
        about = {"interrupted": interrupted, "tried": tried, "left_out": left_out, "refitted": final is not training}
        self.fit_summary_ = training.summary() | about

    def _say_untrained(self, quality: float | None, train: Documents, valid: Documents) -> None:
        """Warn if one order of the labels for all documents, by mean grade, is as good as the network's own orders."""
        mean, metric = np.asarray(train.Y.mean(axis=0), np.float32).ravel(), metric_of(self.metric)
        k = len(mean) if metric.k is None else min(metric.k, len(mean))
        label = np.tile(np.argsort(-mean, kind="stable")[:k], (len(valid), 1))
        same = Top(label, mean[label], len(mean)).judge(valid.Y)
        found = means_over_documents([metric], same, self._propensity(valid))[0]
        if quality is None or (quality <= found and quality < 1.0 - 1e-9):  # 1 is the best of every metric
            warnings.warn(
                f"on the {len(valid)} documents held out, the network ({self.metric} {quality}) is no better than "
                f"one order of labels for all documents, by mean grade ({found:.4f}): the features may say nothing "
                "about the labels, or epochs and patience are too few or batch too large",
                stacklevel=4,
            )

    def top(self, X: Any, k: int | None = None) -> "Top":
        """The best k labels (by default 5, or all if there are fewer) of every document and their scores, best first.

        Ties go to the lower label.  Scores are computed for a few documents at a time, in O(documents * k + labels)
        memory.
        """
        rows = self._rows_to_score(X, None).X
        n_labels = int(self.sizes_[-1])
        k = min(5, n_labels) if k is None else k
        if not 1 <= k <= n_labels:
            raise ValueError(f"k {k} is not in 1..{n_labels}, the number of labels")
        return best_labels(self._network(), rows, k)

    def predict(self, X: Any, k: int | None = None) -> Ints | NDArray[np.object_]:  # type: ignore[override]
        """The best k labels (documents, k) of every document, best first, without storing the scores of all labels.

        Names, if the ranker was fitted to names; else numbers.
        """
        label = self.top(X, k).label
        return label if self.labels_ is None else np.array(self.labels_, object)[label]

    def score(  # type: ignore[override]
        self, X: Any, y: Any = None, metric: str | None = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """Mean of ``metric`` (by default the ranker's own) over the documents that have labels.

        Propensities (``psp@5``, ``psndcg@5``) come from the training documents.  ``sample_weight``: document weights.
        """
        return self.evaluate(X, y, [metric or self.metric], sample_weight)[0]

    def evaluate(
        self,
        X: Any,
        y: Any = None,
        metrics: Sequence[str] = ("p@1", "p@3", "p@5"),
        sample_weight: ArrayLike | None = None,
    ) -> list[float]:
        """Means of several metrics over the documents that have labels; each document is ranked only once."""
        chosen = [metric_of(spec) for spec in metrics]
        data = self._documents(X, y)
        weight = None if sample_weight is None else numbers(sample_weight, "sample_weight", positive=True)
        if weight is not None and len(weight) != len(data):
            raise DataError(f"sample_weight has {len(weight)} entries; there are {len(data)} documents")
        deepest = max(self.sizes_[-1] if m.k is None else min(m.k, self.sizes_[-1]) for m in chosen)
        judged = self.top(data.X, int(deepest)).judge(data.Y)
        return means_over_documents(chosen, judged, self._propensity(data), weight)

    def propensity(self, a: float = 0.55, b: float = 1.5) -> Floats:
        """Propensity (labels,) of every label, from its number of training documents."""
        return propensities(self.label_counts_, max(self.n_documents_, 3), a, b)

    def _propensity(self, data: Documents) -> Floats:
        """Propensity of every label of these documents; labels that the ranker does not know have no training one."""
        unknown = data.Y.shape[1] - len(self.label_counts_)
        return propensities(np.pad(self.label_counts_, (0, unknown)), max(self.n_documents_, 3))

    def _rows_to_score(self, X: Any, qid: Ids | None) -> Queries:
        """Documents to score; each is a list of its own."""
        self._check_fitted()
        if qid is not None:
            raise ValueError("every document is a list of its own: give X alone, without qid")
        rows = checked_features(X.X if isinstance(X, MultiLabel | Documents | Queries) else self._features(X))
        if rows.shape[1] != self.n_features_in_:
            raise DataError(f"the ranker was fitted on {self.n_features_in_} features; these rows have {rows.shape[1]}")
        return Queries(rows, np.zeros(rows.shape[0]), np.arange(rows.shape[0] + 1))

    def _scores(self, queries: Queries) -> Floats:
        """(documents, labels)."""
        refuse_table(queries.X.shape[0], len(self.label_counts_), "a table of scores", FEWER, 1.5)
        return network_scores(self._network(), queries.X).astype(np.float64)

    def _rows_and_grades(self, X: Any, y: Any, qid: Ids | None) -> tuple[Queries, Lists]:
        data = self._documents(X, y)
        n, n_labels = len(data), int(self.sizes_[-1])
        refuse_table(n, n_labels, "a table of documents and labels", FEWER, 3.0)
        grade = data.Y.toarray()[:, :n_labels].ravel()  # labels that the ranker does not know have no score
        return self._rows_to_score(data.X, qid), Lists(grade, n_labels * np.arange(n + 1))

    def _documents(self, X: Any, y: Any) -> Documents:
        """The documents, checked to have the number of labels of the fit; named ones may have more."""
        self._check_fitted()
        data = self._as_documents(X, y)
        if data.Y.shape[1] != self.sizes_[-1] and self.labels_ is None:
            raise DataError(
                f"the ranker was fitted on {self.sizes_[-1]} labels; these documents have {data.Y.shape[1]}"
            )
        return data

    def _add_onnx(self, graph: OnnxGraph) -> str:
        graph.n_labels, graph.labels = int(self.sizes_[-1]), self.labels_
        return add_network(graph, graph.table, self._network())

    def _network(self) -> list[Layer]:
        return layers(self.weights_, self.sizes_.tolist())

    def _check_state(self) -> None:
        check_network(self.weights_, self.sizes_, self.n_features_in_, len(self.label_counts_))
        if self.text_ is None:
            return
        if self.text_[0] not in get_args(TextKind) or (self.text_[0] == "tfidf") != (self.words_ is not None):
            raise DataError(f"its texts are of kind {self.text_[0]!r:.40}, with {len(self.words_ or ())} words")
        if self._vectorizer().n_features != self.n_features_in_:
            raise DataError(f"its texts have {self._vectorizer().n_features} features, not {self.n_features_in_}")

    def _check(self) -> None:
        given = {"batch": self.batch, "epochs": self.epochs, "patience": self.patience}
        check_positive(**{name: value for name, value in given.items() if value is not None})
        if not self._rates():
            raise ValueError("learning_rate is empty; give one or several")
        for rate in self._rates():
            check_positive(learning_rate=rate)
        if self.validation is not None and not 0 < self.validation < 1:
            raise ValueError(f"validation {self.validation} must be a share between 0 and 1")
        if self.negatives is not None:
            check_positive(negatives=self.negatives)
            if not widths(self.hidden) or self.l2:
                raise ValueError("negatives need a hidden layer and l2=0: only what a batch touches is changed")
        Criterion(self.loss, self.loss_params, np.random.default_rng(0))

    def _rates(self) -> Sequence[float]:
        if self.learning_rate is None:
            return (RATE,) if self._averages else RATES
        return self.learning_rate if isinstance(self.learning_rate, Sequence) else (self.learning_rate,)

    def _share(self, n: int) -> float:
        return self.validation if self.validation is not None else 0.1 if n >= LARGE else 0.25

    def _search(self, train: Documents, valid: Documents) -> tuple[Best[Training], dict[str, float | None]]:
        """The best training over the learning rates, from the same initial weights, and the validation of each.

        If the best of three or more is the smallest or the largest, up to MORE_RATES beyond it are tried.
        """
        best: Best[Training] = Best(
            lambda training: -np.inf if training.best.quality is None else training.best.quality
        )
        tried: dict[str, float | None] = {}
        done, waiting = 0, list(self._rates())
        with best:
            while waiting:
                rate, most = waiting.pop(0), self.epochs * (len(tried) + 1 + len(waiting))
                training = self._train(train, valid, rate, self.epochs, done, most)
                done += training.best.steps
                tried[f"{rate:g}"] = training.best.quality
                best.consider(training)
                if training.best.interrupted:
                    raise KeyboardInterrupt
                waiting = waiting or self._rates_beyond(best.state.learning_rate, [float(name) for name in tried])
        return best, tried

    def _rates_beyond(self, chosen: float, tried: Sequence[float]) -> list[float]:
        """The next rate beyond the end of those tried, if the best one is there; else none."""
        given, rates = self._rates(), sorted(tried)
        if len(given) < 3 or len(tried) >= len(given) + MORE_RATES:
            return []
        below, above = rates[0] ** 2 / rates[1], rates[-1] ** 2 / rates[-2]
        return [below] if chosen <= rates[0] * (1 + 1e-9) else [above] if chosen >= rates[-1] * (1 - 1e-9) else []

    def _train(
        self, train: Documents, valid: Documents | None, rate: float, epochs: int, done: int = 0, steps: int = 0
    ) -> Training:
        """Train from the first weights; without a validation set, for all ``epochs``."""
        rng = np.random.default_rng(self.random_state)
        averaged, n_valid = self._averages, 0 if valid is None else int(valid.has_labels().sum())
        plan = schedule_for(len(train), n_valid, self.batch, self.patience, averaged=averaged)
        sizes = self.sizes_.tolist()
        criterion = Criterion(self.loss, self.loss_params, rng)
        weights = first_weights(sizes, rng, averaged=averaged)
        apart = averaged and len(sizes) > 2 and sizes[-1] <= APART * sizes[-2]
        if averaged and len(sizes) > 2:
            W = layers(weights, sizes)[-1][0]
            W[...] = 2.0 * (orthogonal(W) if apart else W)  # longer ones need fewer epochs
        if self._start is not None:
            weights = neural.weights_to_continue(self._start, self.sizes_)
            weights = weights if self._units is None else self._units.from_own(weights, sizes)
            criterion.continue_from(self._start.learned_)
        metrics = [metric_of(name) for name in self._metric_names()]
        depth = max(sizes[-1] if one.k is None else min(one.k, sizes[-1]) for one in metrics)
        propensity = self.propensity() if valid is None else self._propensity(valid)

        def judge(weights: Weights) -> float:
            assert valid is not None
            found = best_labels(layers(weights, sizes), valid.X, depth)
            means = means_over_documents(metrics, found.judge(valid.Y), propensity)
            return self._note(dict(zip(self._metric_names(), means)))

        def epoch() -> Iterator[Documents]:
            order = rng.permutation(len(train))
            return (train[np.sort(order[a : a + plan.batch])] for a in range(0, len(order), plan.batch))

        def objective(network: Sequence[Layer], batch: Documents) -> Any:
            if self.negatives is None:
                return mean_loss(criterion, forward(network, as_input(batch.X, transposed=True)), batch.own_labels())
            return sampled_loss(criterion, network, batch, self.negatives, rng)

        return neural.descend(
            weights, sizes, criterion, objective, epoch,
            learning_rate=rate, l2=self.l2, epochs=epochs, patience=plan.patience,
            judge=None if valid is None else judge,
            tell=lambda step, value: self._report_progress(done + step, steps or epochs, value),
            sparse=self.negatives is not None, first_counts=self._start is not None, values=self._noted,
            averages_every=plan.averages_every, least=plan.least, last_share=LABEL_SHARE if apart else 1.0,
        )  # fmt: skip
