"""A neural score of the features, fitted to any loss."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placet.data import Lists, Queries
from placet.data.arrays import Floats
from placet.data.rankings import rows_of
from placet.kernels import ranges
from placet.metrics import metric as metric_of
from placet.rank import network as net
from placet.rank.objective import LEVELLED
from placet.rank.products import moments
from placet.rank.ranker import Ranker, mean_defined
from placet.rank.training import Criterion, Training, descend

ROWS_AT_ONCE = 65_536


class NeuralRanker(Ranker):
    """A fully connected network with ReLU, fitted to any loss by Adam: lists stay ragged, nothing is padded.

    Minimises, over batches of ``batch`` queries,  sum_q weight_q loss_q(s) / sum_q weight_q + l2 / 2 |W|^2.  With a
    validation set, training stops when ``metric`` has not improved for ``patience`` epochs, and the best epoch is kept;
    without one it runs for ``epochs``.  ``standardize`` brings dense features to mean 0 and deviation 1 (sparse ones to
    deviation 1, so that zeros stay zeros).  The same ``random_state`` gives the same bytes with the same number of
    threads of PyTorch.  Training needs PyTorch (``pip install 'placet[neural]'``); a fitted ranker does not.

    >>> import placet
    >>> data = placet.simulate.queries(60, 8, 3, noise=0.3, random_state=1)
    >>> ranker = NeuralRanker("ranknet", hidden=(16,), epochs=20, learning_rate=1e-2).fit(data[:40])
    >>> ranker.score(data[40:], metric="ndcg@5") > 0.85
    True
    """

    _state = ("weights_", "sizes_", "mean_", "scale_", "learnt_")

    def __init__(
        self,
        loss: str = "pmop-fd",
        hidden: int | Sequence[int] = (256,),
        *,
        learning_rate: float = 1e-3,
        l2: float = 0.0,
        batch: int = 32,
        epochs: int = 100,
        patience: int = 10,
        standardize: bool = True,
        metric: str = "ndcg@10",
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
        self.standardize = standardize
        self.metric = metric
        self.loss_params = loss_params
        self.random_state = random_state

    def _fit(self, queries: Queries, valid: Queries | None) -> None:
        check_positive(learning_rate=self.learning_rate, batch=self.batch, epochs=self.epochs, patience=self.patience)
        rng = np.random.default_rng(self.random_state)
        criterion = Criterion(self.loss, self.loss_params, rng)
        self.sizes_ = np.array([queries.n_features, *net.widths(self.hidden), 1])
        self.mean_, self.scale_ = np.zeros(queries.n_features), np.ones(queries.n_features)
        if self.standardize:
            mean, self.scale_ = moments(queries.X)
            self.mean_ = mean if isinstance(queries.X, np.ndarray) else self.mean_
        order = ranges.descending_order(queries.grade, queries.offsets)  # as kernels want them, once
        X, grade = self._standardized(queries.X)[order], queries.grade[order]
        score = metric_of(self.metric)

        weights = net.first_weights(self.sizes_.tolist(), rng)
        levelled = self.loss in LEVELLED
        if levelled:
            weights[-1 - self.sizes_[-2] :] = 0.0  # scores mean something from the start: 0, not what chance gives
        else:
            weights[-1] = 0.0  # a constant that the loss does not see; Adam would follow the noise of rounding

        def objective(network: Sequence[net.Layer], chosen: NDArray[np.int64]) -> Any:
            *inner, (W, b) = network
            network = network if levelled else [*inner, (W, b.detach())]
            rows, offsets = rows_of(queries.offsets, chosen)
            weight = queries.weight[chosen]
            s = net.forward(network, net.as_input(X[rows])).squeeze(1)
            return criterion(s, Lists(grade[rows], offsets, weight)) / float(weight.sum())

        def epoch() -> Iterator[NDArray[np.int64]]:
            shuffled = rng.permutation(np.flatnonzero(queries.weight > 0))
            return (np.sort(shuffled[a : a + self.batch]) for a in range(0, len(shuffled), self.batch))

        def validate(weights: net.Weights, _: dict[str, float]) -> float:
            assert valid is not None
            self.weights_ = weights
            return mean_defined(score(self._scores(valid.X, valid.offsets), valid.grade, valid.offsets))

        training = descend(
            weights, self.sizes_.tolist(), criterion, objective, epoch,
            learning_rate=self.learning_rate, l2=self.l2, epochs=self.epochs, patience=self.patience,
            validate=None if valid is None else validate, tell=lambda step, value: self._tell(step, self.epochs, value),
        )  # fmt: skip
        self._keep(training)

    def _keep(self, training: Training) -> None:
        self.weights_, self.learnt_, self.fit_summary_ = training.weights, training.learnt, training.summary()
        refuse_diverged(training)

    def _standardized(self, X: Any) -> Any:
        """Rows as the network takes them, float32."""
        if isinstance(X, np.ndarray):
            return ((X - self.mean_) / self.scale_).astype(np.float32)
        out = X.astype(np.float32)
        out.data = (X.data / self.scale_[X.indices]).astype(np.float32)
        return out

    def _scores(self, X: Any, offsets: NDArray[np.int64]) -> Floats:
        network = net.layers(self.weights_, self.sizes_.tolist())
        blocks = (X[a : a + ROWS_AT_ONCE] for a in range(0, X.shape[0], ROWS_AT_ONCE))
        found = [net.scores(network, self._standardized(block))[:, 0] for block in blocks]
        return np.concatenate([np.zeros(0), *found], dtype=np.float64)


def check_positive(**numbers: float) -> None:
    for name, value in numbers.items():
        if not value > 0:
            raise ValueError(f"{name} must be above 0, not {value}")


def refuse_diverged(training: Training) -> None:
    """Refuse a training that never had a finite epoch."""
    if training.diverged and training.best_epoch == 0:
        raise ValueError(f"training diverged in its first epoch at learning_rate={training.learning_rate}; lower it")
