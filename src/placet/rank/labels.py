"""Extreme multi-label ranking: a document's labels are a ranking of all labels into tiers."""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from placet.data import DataError
from placet.io import Judged, MultiLabel, judge_labels
from placet.kernels import labels as kernels
from placet.metrics import metric as metric_of
from placet.metrics import propensities
from placet.rank import files
from placet.rank import network as net
from placet.rank.label_data import Documents, checked_features, checked_labels
from placet.rank.label_losses import COLLAPSED, Own, loss_of_labels
from placet.rank.neural import check_positive, refuse_diverged
from placet.rank.ranker import Progress, mean_defined
from placet.rank.training import Criterion, Training, descend, known

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

CELLS_AT_ONCE = 1 << 22  # scores held at once in prediction: 16 MB
LARGE = 100_000  # documents from which on a tenth is enough for validation


class LabelRanker(BaseEstimator):
    """A network that scores every label for a document, fitted to a loss of the tiers: own labels above the others.

    ``Y`` (documents, labels) is a CSR matrix; stored values are grades above 0, and more than one grade gives more than
    two tiers.  ``pl-partition`` is the exact likelihood that all own labels come before all others.  Any loss of
    ``LOSSES`` will do; no pairs are stored.  Adam on batches of ``batch`` documents; of several ``learning_rate`` the
    one best on validation is kept, each stopped when ``metric`` has not improved for ``patience`` epochs.  Without
    ``valid``, ``validation`` of the documents are held out: by default a quarter, of 100,000 and more a tenth.

    ``negatives`` scores only the labels of the batch and that many of the others, drawn evenly, and changes only what
    they touch.  For ``pl-partition`` and ``pl-lower-bound`` a label drawn stands for (others / negatives) labels: the
    sum over the others is then right in the mean, its logarithm too small by about its relative variance / 2, so own
    labels are pushed up a little less than they should be.  Other losses see the shorter list as it is, and labels that
    are frequent in the batch count more among the others than they should.

    Documents without labels, or with all of them in one tier, teach nothing and are left out of training
    (``fit_summary_["left_out"]``); documents without features are scored by what all have in common.
    The same ``random_state`` gives the same bytes with the same number of threads of PyTorch.

    >>> from scipy.sparse import csr_matrix
    >>> X = csr_matrix(np.tile(np.eye(4), (50, 1)))
    >>> Y = csr_matrix(np.tile([[1, 1, 0, 0, 0], [0, 1, 1, 0, 0], [0, 0, 1, 1, 0], [0, 0, 0, 1, 1]], (50, 1)))
    >>> ranker = LabelRanker(hidden=(16,), learning_rate=1e-2, batch=8).fit(X, Y)
    >>> np.sort(ranker.predict(X[:4], k=2)).tolist()
    [[0, 1], [1, 2], [2, 3], [3, 4]]
    """

    _state = ("weights_", "sizes_", "learnt_", "label_counts_", "n_documents_", "n_features_in_", "fit_summary_")

    def __init__(
        self,
        loss: str = "pl-partition",
        hidden: int | Sequence[int] = (256,),
        *,
        learning_rate: float | Sequence[float] = (1e-4, 1e-3, 1e-2),
        l2: float = 0.0,
        batch: int = 128,
        epochs: int = 100,
        patience: int = 5,
        validation: float | None = None,
        metric: str = "ndcg@5",
        negatives: int | None = None,
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
        self.loss_params = loss_params
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        Y: Any = None,
        *,
        valid: "MultiLabel | tuple[Any, Any] | None" = None,
        progress: Progress | None = None,
    ) -> Self:
        """Fit on features and labels, or on ``MultiLabel`` (as ``read_xmc`` gives it); ``valid`` likewise.

        An interrupt (Ctrl-C) keeps the best so far.  ``progress(step, steps at most, metric)`` is called after each
        epoch.
        """
        self._check()
        data = as_documents(X, Y)
        rng = np.random.default_rng(self.random_state)
        if valid is None:
            train, held_out = data.split(self._share(len(data)), rng)
        else:
            train, held_out = data, as_documents(*(valid if isinstance(valid, tuple) else (valid, None)))
            held_out.refuse_unlike(data)
        useful = train.useful()
        if not useful.any() or not held_out.labelled().any():
            raise DataError(
                f"{int(useful.sum())} of {len(train)} documents for training have labels above others, and "
                f"{int(held_out.labelled().sum())} of {len(held_out)} for validation have labels; both need some"
            )
        self.n_features_in_ = data.X.shape[1]
        self.n_documents_ = len(data)
        self.label_counts_ = np.bincount(data.Y.indices, minlength=data.Y.shape[1])
        self.sizes_ = np.array([data.X.shape[1], *net.widths(self.hidden), data.Y.shape[1]])
        best, tried = self._search(train[np.flatnonzero(useful)], held_out, progress)
        self.weights_, self.learnt_ = best.weights, best.learnt
        self.fit_summary_ = best.summary() | {"tried": tried, "left_out": int((~useful).sum())}
        return self

    def top(self, X: Any, k: int = 5) -> "Top":
        """The best k labels of every document and their scores, best first; of equal scores the lower label is first.

        Scores are computed for a few documents at a time: memory is O(documents * k + labels).
        """
        self._check_fitted()
        rows = checked_features(X)
        if rows.shape[1] != self.n_features_in_:
            raise DataError(f"the ranker was fitted on {self.n_features_in_} features; these rows have {rows.shape[1]}")
        n_labels = int(self.sizes_[-1])
        if not 1 <= k <= n_labels:
            raise ValueError(f"k {k} is not in 1..{n_labels}, the number of labels")
        return best_labels(net.layers(self.weights_, self.sizes_.tolist()), rows, k)

    def predict(self, X: Any, k: int = 5) -> NDArray[np.int64]:
        """The best k labels (documents, k) of every document, best first, without holding a score for each label."""
        return self.top(X, k).label

    def score(self, X: Any, Y: Any = None, metric: str | None = None) -> float:
        """Mean of ``metric`` (the ranker's own unless given) over the documents that have labels.

        Propensities are those of the documents at fit (``psp@5``, ``psndcg@5``).
        """
        return self.evaluate(X, Y, [metric or self.metric])[0]

    def evaluate(self, X: Any, Y: Any = None, metrics: Sequence[str] = ("p@1", "p@3", "p@5")) -> list[float]:
        """Means of several metrics over the documents that have labels, which are ranked once."""
        data = as_documents(X, Y)
        if data.Y.shape[1] != self.sizes_[-1]:
            raise DataError(
                f"the ranker was fitted on {self.sizes_[-1]} labels; these documents have {data.Y.shape[1]}"
            )
        chosen = [metric_of(spec) for spec in metrics]
        deepest = max(self.sizes_[-1] if m.k is None else min(m.k, self.sizes_[-1]) for m in chosen)
        return judged_means(chosen, self.top(data.X, int(deepest)).judged(data.Y), self.propensity())

    def propensity(self, a: float = 0.55, b: float = 1.5) -> NDArray[np.float64]:
        """Propensity (labels,) of every label, from its number of documents at fit."""
        return propensities(self.label_counts_, max(self.n_documents_, 3), a, b)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted ranker to one file, which ``placet.load`` reads."""
        self._check_fitted()
        state = {name: getattr(self, name) for name in self._state}
        files.write(path, type(self).__name__, self.get_params(deep=False), state)

    @classmethod
    def from_saved(cls, params: dict[str, Any], state: dict[str, Any]) -> Self:
        """The ranker that ``save`` wrote, or a ``DataError``."""
        if not isinstance(state, dict) or set(state) != set(cls._state):
            raise DataError(f"the state of a {cls.__name__} is {sorted(cls._state)}, not {sorted(state)}")
        given: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in params.items()}
        ranker = cls(**given)
        for name, value in state.items():
            setattr(ranker, name, value)
        return ranker

    def _check(self) -> None:
        check_positive(batch=self.batch, epochs=self.epochs, patience=self.patience)
        if not self._rates():
            raise ValueError("learning_rate is empty; give one or several")
        for rate in self._rates():
            check_positive(learning_rate=rate)
        if self.validation is not None and not 0 < self.validation < 1:
            raise ValueError(f"validation {self.validation} must be a share between 0 and 1")
        if self.negatives is not None:
            check_positive(negatives=self.negatives)
            if not net.widths(self.hidden) or self.l2:
                raise ValueError("negatives need a hidden layer and l2=0: only what a batch touches is changed")
        Criterion(self.loss, self.loss_params, np.random.default_rng(0))

    def _check_fitted(self) -> None:
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self, "weights_")

    def _rates(self) -> Sequence[float]:
        return self.learning_rate if isinstance(self.learning_rate, Sequence) else (self.learning_rate,)

    def _share(self, n: int) -> float:
        return self.validation if self.validation is not None else 0.1 if n >= LARGE else 0.25

    def _search(
        self, train: Documents, held_out: Documents, progress: Progress | None
    ) -> tuple[Training, dict[str, float | None]]:
        """The best training over the learning rates, from the same first weights, and the validation of each."""
        best: Training | None = None
        tried: dict[str, float | None] = {}
        done, steps = 0, self.epochs * len(self._rates())
        for rate in self._rates():

            def tell(step: int, value: float | None, done: int = done) -> None:
                if progress is not None:
                    progress(done + step, steps, value)

            training = self._train(train, held_out, rate, tell)
            done += training.epochs
            tried[f"{rate:g}"] = training.validation
            if best is None or (training.validation or -np.inf) > (best.validation or -np.inf):
                best = training
            if training.interrupted:
                best.interrupted = True
                break
        assert best is not None
        refuse_diverged(best)
        return best, tried

    def _train(self, train: Documents, held_out: Documents, rate: float, tell: Any) -> Training:
        rng = np.random.default_rng(self.random_state)
        sizes = self.sizes_.tolist()
        criterion = Criterion(self.loss, self.loss_params, rng)
        metric = metric_of(self.metric)
        depth = sizes[-1] if metric.k is None else min(metric.k, sizes[-1])
        propensity = self.propensity()

        def validate(weights: net.Weights, _: dict[str, float]) -> float:
            found = best_labels(net.layers(weights, sizes), held_out.X, depth)
            return judged_means([metric], found.judged(held_out.Y), propensity)[0]

        def epoch() -> Iterator[Documents]:
            order = rng.permutation(len(train))
            return (train[np.sort(order[a : a + self.batch])] for a in range(0, len(order), self.batch))

        def objective(network: Sequence[net.Layer], batch: Documents) -> Any:
            if self.negatives is None:
                return mean_loss(criterion, net.forward(network, net.as_input(batch.X)), batch.own())
            return sampled_loss(criterion, network, batch, self.negatives, rng)

        return descend(
            net.first_weights(sizes, rng), sizes, criterion, objective, epoch,
            learning_rate=rate, l2=self.l2, epochs=self.epochs, patience=self.patience, validate=validate, tell=tell,
            sparse=self.negatives is not None,
        )  # fmt: skip


class Top(NamedTuple):
    """The best labels of documents: ``label`` and ``score`` (documents, k), best first."""

    label: NDArray[np.int64]
    score: NDArray[np.float32]
    n_labels: int

    def matrix(self) -> "csr_matrix":
        """Scores (documents, labels) as a CSR matrix that stores these alone, in this order."""
        from scipy.sparse import csr_matrix

        n, k = self.label.shape
        entries = self.score.ravel().astype(np.float64), self.label.ravel(), k * np.arange(n + 1)
        return csr_matrix(entries, shape=(n, self.n_labels))

    def judged(self, Y: "csr_matrix") -> Judged:
        """Met with the true labels, as metrics take it."""
        return judge_labels(self.matrix(), Y)


def best_labels(network: Sequence[net.Layer], X: "csr_matrix", k: int) -> Top:
    """The best k labels of every row, a block of rows at a time.  O(rows * labels) time."""
    n_labels = len(network[-1][1])
    label, score = np.empty((X.shape[0], k), np.int64), np.empty((X.shape[0], k), np.float32)
    step = max(1, CELLS_AT_ONCE // n_labels)
    for a in range(0, X.shape[0], step):
        kernels.largest(net.scores(network, X[a : a + step]), label[a : a + step], score[a : a + step])
    return Top(label, score, n_labels)


def judged_means(metrics: Sequence[Any], judged: Judged, propensity: NDArray[np.float64]) -> list[float]:
    """Mean of each metric over the documents in which it is defined."""
    of_row = propensity[judged.name] if judged.name is not None else None
    values = [m(judged.score, judged.grade, judged.offsets, propensity=of_row) for m in metrics]
    return [mean_defined(value) for value in values]


def mean_loss(criterion: Criterion, table: Any, own: Own) -> Any:
    """Loss per document as a PyTorch number of the table of scores and of what the loss learns."""
    learnt = criterion.learnt_values()
    extra = {**learnt, "parameter_gradient": True} if learnt else {}
    value, grad, slopes = loss_of_labels(criterion.loss, table, own, {**criterion.drawn(), **extra})
    scale = 1.0 / len(table)
    back = [grad.mul_(scale), *(tensor.new_tensor(scale * slopes[name]) for name, tensor in criterion.learnt.items())]
    return known(scale * value, back, [table, *criterion.learnt.values()])


def sampled_loss(
    criterion: Criterion, network: Sequence[net.Layer], batch: Documents, negatives: int, rng: np.random.Generator
) -> Any:
    """Loss per document over the labels of the batch and ``negatives`` of the others, drawn evenly."""
    torch = net.pytorch()
    n_labels = batch.Y.shape[1]
    here = np.unique(batch.Y.indices)
    others = n_labels - len(here)
    drawn = np.setdiff1d(rng.choice(n_labels, min(n_labels, negatives + len(here)), replace=False), here)[:negatives]
    label = np.concatenate([here, drawn]).astype(np.int64)
    index = torch.from_numpy(label)
    *inner, (W, b) = network
    vectors = torch.nn.functional.embedding(index, W, sparse=True)
    table = torch.nn.functional.linear(net.hidden(inner, net.as_input(batch.X), sparse=True), vectors, b[index])
    own = batch.own()._replace(label=np.searchsorted(here, batch.own().label))
    if criterion.loss in COLLAPSED and len(drawn):
        stands_for = np.concatenate([np.zeros(len(here)), np.full(len(drawn), np.log(others / len(drawn)))])
        table = table + torch.from_numpy(stands_for.astype(np.float32))
    return mean_loss(criterion, table, own)


def as_documents(X: Any, Y: Any) -> Documents:
    """Features and labels, checked, or a ``DataError``."""
    if isinstance(X, MultiLabel):
        if Y is not None:
            raise ValueError("MultiLabel holds its labels; give it alone, without Y")
        X, Y = X.X, X.Y
    if Y is None:
        raise ValueError("give Y (documents, labels), a CSR matrix of grades, or MultiLabel")
    rows, labels = checked_features(X), checked_labels(Y)
    if rows.shape[0] != labels.shape[0]:
        raise DataError(f"X has {rows.shape[0]} documents and Y has {labels.shape[0]}; give one row for each in both")
    return Documents(rows, labels)
