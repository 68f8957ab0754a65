"""A neural ranker for any loss: the ranker and its training; PyTorch is imported when a network is first trained."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placet.data import DataError, Lists, Queries
from placet.data.arrays import Floats, numbers, rows_of
from placet.losses import Bound, needs
from placet.rank.controls import effects_of
from placet.rank.feature_tables import moments, to_dense
from placet.rank.ranker import Ranker
from placet.rank.saving.fitted_state import Array, Learned, holds
from placet.rank.saving.onnx_export import OnnxGraph, add_network
from placet.rank.torch.feature_bins import Bins
from placet.rank.torch.network import (
    Layer,
    Weights,
    as_input,
    check_network,
    first_weights,
    layers,
    member_scores,
    network_scores,
    pytorch,
    widths,
)
from placet.rank.torch.running_mean import RunningMean
from placet.rank.validation import Best

ROWS_AT_ONCE = 65_536
FEWEST_BATCHES = 20  # batches of an epoch by default, where there are as many queries
LARGEST = 1e18  # limit on gradients in single precision, which Adam squares


class NeuralRanker(Ranker):
    """A fully connected ReLU network, fitted to any loss by Adam; lists stay ragged, without padding.

    Minimizes, over batches of queries,  sum_q weight_q loss_q(s) / sum_q weight_q + l2 / 2 |W|^2; without a validation
    set the rate falls to 0 along half a cosine.  Each of ``members`` parts of the last hidden layer has a score and a
    loss of its own, and the score of the network is their mean.  Results are bit-for-bit reproducible for the same
    ``random_state`` and number of PyTorch threads.  Training needs PyTorch (``pip install 'placet[neural]'``); a fitted
    ranker does not.

    ``fit(..., start=ranker)`` trains the network of a fitted ranker, or of its file, for ``epochs`` further epochs; its
    widths must be ``hidden``, and its standardization stays.

    ``fit(..., control=Z)`` fits ``s = network + Z @ gamma``, with gamma also fitted by Adam, without a penalty;
    ``controls_`` maps the names of the controls to gamma, and `predict` returns the network's output alone.

    Parameters
    ----------
    loss : str
        A name in ``LOSSES``.
    hidden : int or sequence of int
        Widths of the hidden layers, the last one that of each member; () is a linear network.
    bins : int, optional
        Replace each dense feature by columns that rise from 0 to 1 between this many quantiles: curves, steps and
        heavy tails are then learned as readily as lines.  None: the features themselves.
    members : int
        Number of parts of the last hidden layer that are trained to rank by themselves.
    dropout : float
        Fraction of hidden units set to 0 at random in each step of training.
    learning_rate : float
        Learning rate of Adam (without a validation set, the first one).
    l1 : float
        Keep a weight of the first layer only if its mean gradient is about this many standard errors from 0; others
        become exactly 0, so that columns without a clear effect are left out.  0: no selection.
    l2 : float
        Penalty on the weights.
    batch : int, optional
        Queries per batch; by default 32, or fewer if an epoch would have less than 20 batches.
    epochs : int
        Maximum number of passes over the queries.
    patience : int
        With a validation set, stop after this many epochs without a better ``metric``; the best epoch is kept.
    standardize : bool
        Scale dense features to mean 0 and deviation 1, sparse ones to deviation 1 only, so that zeros stay zeros.
        Columns of ``bins`` are always scaled.
    metric : str
        Validation metric.
    loss_params : mapping, optional
        Parameters of the loss.
    random_state : int
        Seed of the initial weights, the batches and the loss.

    >>> import placet
    >>> data = placet.simulate.queries(60, 8, 3, noise=0.3, random_state=1)
    >>> ranker = NeuralRanker("ranknet", hidden=(16,), epochs=20, learning_rate=1e-2).fit(data[:40])
    >>> ranker.score(data[40:], metric="ndcg@5") > 0.85
    True
    """

    _state = holds(
        weights_=Array("weights", dtype="float32"),
        sizes_=Array("layers", dtype="int64", low=0),
        mean_=Array("columns"),
        scale_=Array("columns", above=0),
        bin_feature_=Array("bins", dtype="int64", low=0),
        bin_low_=Array("bins"),
        bin_width_=Array("bins", above=0),
        bin_step_=Array("bins"),
        learned_=Learned(),
        controls_=Learned(),
    )
    takes_control = takes_start = True

    def __init__(
        self,
        loss: str = "pl-partition",
        hidden: int | Sequence[int] = (256,),
        *,
        bins: int | None = 16,
        members: int = 2,
        dropout: float = 0.2,
        learning_rate: float = 5e-3,
        l1: float = 1.8,
        l2: float = 0.0,
        batch: int | None = None,
        epochs: int = 20,
        patience: int = 10,
        standardize: bool = True,
        metric: str = "ndcg@10",
        loss_params: Mapping[str, Any] | None = None,
        random_state: int = 0,
    ) -> None:
        self.loss = loss
        self.hidden = hidden
        self.bins = bins
        self.members = members
        self.dropout = dropout
        self.learning_rate = learning_rate
        self.l1 = l1
        self.l2 = l2
        self.batch = batch
        self.epochs = epochs
        self.patience = patience
        self.standardize = standardize
        self.metric = metric
        self.loss_params = loss_params
        self.random_state = random_state

    def _fit(self, queries: Queries, valid: Queries | None) -> None:
        self._check()
        rng = np.random.default_rng(self.random_state)
        criterion = Criterion(self.loss, self.loss_params, rng)
        self._set_columns_of(queries.X)
        *outer, last = [len(self.mean_), *widths(self.hidden)]
        self.sizes_ = np.array([*outer, last * (self.members if outer else 1), 1])
        batch = min(32, max(1, -(-len(queries) // FEWEST_BATCHES))) if self.batch is None else self.batch
        n_batches = max(np.count_nonzero(queries.weight) / batch, FEWEST_BATCHES)
        # one matrix of all columns would not fit where there are many bins
        X = queries.X if len(self.bin_low_) else self._columns(queries.X)
        weights = first_weights(self.sizes_.tolist(), rng)
        fits_constant = not criterion.loss.shift_invariant
        if fits_constant:
            weights[-1 - self.sizes_[-2] :] = 0.0  # the shift matters: start from scores of 0
        else:
            weights[-1] = 0.0  # the loss is shift-invariant; Adam would follow rounding errors
        effects, draws = effects_of(self._control), pytorch().Generator().manual_seed(self.random_state)
        if self._start is not None:
            weights = weights_to_continue(self._start, self.sizes_)
            layers(weights, self.sizes_.tolist())[-1][0][...] *= self._n_members()
            criterion.continue_from(self._start.learned_)
            if effects is not None:
                effects.begin_at(self._start.controls_)
        gamma = {} if effects is None else scalar_tensors(effects.names, effects.effect)

        def objective(network: Sequence[Layer], chosen: NDArray[np.int64]) -> Any:
            *inner, (W, b) = network
            network = network if fits_constant else [*inner, (W, b.detach())]
            rows, offsets = rows_of(queries.offsets, chosen)
            part = self._columns(X[rows]) if len(self.bin_low_) else X[rows]
            each = member_scores(network, as_input(part), self._n_members(), self.dropout, draws)
            if effects is not None:
                each = each + (as_input(effects.Z[rows]) @ pytorch().stack(list(gamma.values())))[:, None]
            lists = Lists(queries.grade[rows], offsets, queries.weight[chosen])
            return sum(criterion(s, lists) for s in each.unbind(1)) / each.shape[1]

        def epoch() -> Iterator[NDArray[np.int64]]:
            shuffled = rng.permutation(np.flatnonzero(queries.weight > 0))
            return (np.sort(shuffled[a : a + batch]) for a in range(0, len(shuffled), batch))

        def scores(weights: Weights) -> Floats:
            self.weights_ = weights
            assert valid is not None
            return self._scores(valid)

        training = descend(
            weights, self.sizes_.tolist(), criterion, objective, epoch,
            learning_rate=self.learning_rate, l1=self.l1 / np.sqrt(n_batches), l2=self.l2,
            epochs=self.epochs, patience=self.patience,
            judge=self._judge(valid, scores), tell=lambda step, value: self._report_progress(step, self.epochs, value),
            also_learn=gamma, first_counts=self._start is not None, values=self._noted, falls=valid is None,
        )  # fmt: skip
        refuse_diverged(training)
        self.weights_, self.fit_summary_ = training.weights, training.summary()
        layers(self.weights_, self.sizes_.tolist())[-1][0][...] /= self._n_members()  # the mean of members, not the sum
        self.learned_ = {name: value for name, value in training.learned.items() if name in criterion.learned}
        found = () if effects is None else zip(effects.names, [training.learned[k] for k in gamma] / effects.unit)
        self.controls_ = {name: float(value) for name, value in found}

    def _check(self) -> None:
        given = {"learning_rate": self.learning_rate, "epochs": self.epochs, "patience": self.patience}
        check_positive(**given, members=self.members, **({} if self.batch is None else {"batch": self.batch}))
        if self.bins is not None:
            check_positive(bins=self.bins)
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout {self.dropout} must be a share, at least 0 and below 1")
        if not 0 <= self.l1 < np.inf:
            raise ValueError(f"l1 {self.l1} must be a number of standard errors, at least 0")

    def _n_members(self) -> int:
        return self.members if len(self.sizes_) > 2 else 1

    def _set_columns_of(self, X: Any) -> None:
        """The columns of the network: standardized features, or bins of them."""
        n = X.shape[1]
        self.mean_, self.scale_ = np.zeros(n), np.ones(n)
        self.bin_feature_, self.bin_low_, self.bin_width_, self.bin_step_ = np.zeros(0, np.int64), *np.zeros((3, 0))
        if self._start is not None:
            for name in ("bin_feature_", "bin_low_", "bin_width_", "bin_step_", "mean_", "scale_"):
                setattr(self, name, getattr(self._start, name))
        elif self.bins is not None and isinstance(X, np.ndarray):
            found = Bins.of(X, self.bins)
            self.bin_feature_, self.bin_low_, self.bin_width_, self.bin_step_, self.mean_, self.scale_ = found
        elif self.standardize:
            mean, self.scale_ = moments(X)
            self.mean_ = mean if isinstance(X, np.ndarray) else self.mean_

    def _bins(self) -> Bins:
        return Bins(self.bin_feature_, self.bin_low_, self.bin_width_, self.bin_step_, self.mean_, self.scale_)

    def _check_state(self) -> None:
        check_network(self.weights_, self.sizes_, len(self.mean_), 1)
        n, of_bins = self.n_features_in_, self.bin_feature_
        every = not len(of_bins) or np.array_equal(np.unique(of_bins), np.arange(n))
        if len(self.mean_) != n + len(of_bins) or not every or (np.diff(of_bins) < 0).any():
            raise DataError(f"{len(self.mean_)} columns of the network are not those of {self.n_features_in_} features")

    def _columns(self, X: Any) -> Any:
        """Rows as input to the network, float32."""
        if len(self.bin_low_):
            return self._bins().columns(to_dense(X))
        if isinstance(X, np.ndarray):
            return ((X - self.mean_) / self.scale_).astype(np.float32)
        out = X.astype(np.float32)
        out.data = (X.data / self.scale_[X.indices]).astype(np.float32)
        return out

    def _add_onnx(self, graph: OnnxGraph) -> str:
        rows = graph.table
        if len(self.bin_low_):
            rows = graph.add("Gather", [graph.table, graph.constant(self.bin_feature_)], axis=1)
            rows = graph.add("Sub", [rows, graph.constant(self.bin_low_)])
            rows = graph.add("Div", [rows, graph.constant(self.bin_width_)])
            rows = graph.add("Clip", [rows, graph.constant(np.array(0.0)), graph.constant(np.array(1.0))])
            rows = graph.add("Concat", [graph.add("MatMul", [rows, graph.constant(self._bins().sums())]), rows], axis=1)
        network = layers(self.weights_, self.sizes_.tolist())
        return add_network(graph, graph.standardize(self.mean_, self.scale_, rows), network)

    def _scores(self, queries: Queries) -> Floats:
        """Computed in double precision and rounded to single: equal rows tie, wherever among the others they stand."""
        network, X = layers(self.weights_.astype(np.float64), self.sizes_.tolist()), queries.X
        size = max(1, ROWS_AT_ONCE // 16) if len(self.bin_low_) else ROWS_AT_ONCE
        blocks = (X[a : a + size] for a in range(0, X.shape[0], size))
        found = [network_scores(network, self._columns(block))[:, 0].astype(np.float32) for block in blocks]
        return np.concatenate([np.zeros(0), *found], dtype=np.float64)


# --- training ---------------------------------------------------------------------------------------------------------


def torch_loss(loss: str, scores: Any, lists: Lists, **params: Any) -> Any:
    """A loss from ``LOSSES`` as a PyTorch scalar, for use with your own network and training loop.

    ``scores`` (rows,): a tensor; ``lists`` splits its rows into ragged lists, without padding.  Learned parameters of
    the loss (``learned`` of its record) may be tensors and then receive gradients too.  Once differentiable.

    Returns
    -------
    torch.Tensor
        The loss, with gradients of the scores.

    >>> s = pytorch().zeros(3, requires_grad=True)
    >>> value = torch_loss("pl-partition", s, Lists([1, 1, 0], [0, 3]))
    >>> round(value.item(), 4)  # log 3: each of three equals may be the last
    1.0986
    >>> value.backward()
    >>> s.grad.numpy().round(4)
    array([-0.4167, -0.4167,  0.8333], dtype=float32)
    """
    learned = {name: value for name, value in params.items() if isinstance(value, pytorch().Tensor)}
    given = {name: value for name, value in params.items() if name not in learned}
    bound = Bound(loss, lists, given, total=1.0, learn=learned)
    if scores.shape != (bound.n_rows,):
        raise ValueError(
            f"scores have shape {tuple(scores.shape)} and lists {bound.n_rows} rows; give one score per row"
        )
    numbers(scores.detach().to("cpu", pytorch().float64).numpy(), "score")
    return bound_node(bound, scores, learned)


def bound_node(bound: Bound, scores: Any, learned: Mapping[str, Any], rng: np.random.Generator | None = None) -> Any:
    """A bound loss as a PyTorch node, a function of the scores and of its learned parameters."""
    torch = pytorch()
    rows = scores.detach().to("cpu", torch.float64).numpy()
    value, grad, slopes = bound.value_grad_slopes(rows, numbers_of(learned), rng)
    back = torch.from_numpy(to_float32(grad) if scores.dtype == torch.float32 else grad).to(scores.device, scores.dtype)
    return torch_node(value, [back, *slopes_like(learned, slopes)], [scores, *learned.values()])


def numbers_of(learned: Mapping[str, Any]) -> dict[str, float]:
    """The values of learned parameters given as tensors."""
    return {name: float(value.detach()) for name, value in learned.items()}


def scalar_tensors(names: Sequence[str], values: Iterable[float]) -> dict[str, Any]:
    """A scalar to learn for each name, prefixed to differ from the parameters of a loss."""
    torch = pytorch()
    new = lambda value: torch.tensor(float(value), dtype=torch.float32, requires_grad=True)  # noqa: E731
    return {f"control {name}": new(value) for name, value in zip(names, values)}


def weights_to_continue(start: Any, sizes: NDArray[np.int64]) -> Weights:
    """A copy of the weights of a fitted network, whose layers must have these sizes."""
    if not np.array_equal(start.sizes_, sizes):
        raise ValueError(
            f"start has layers of sizes {start.sizes_.tolist()}, not {sizes.tolist()}; give hidden= its widths"
        )
    return np.array(start.weights_)


def slopes_like(learned: Mapping[str, Any], slopes: Floats) -> list[Any]:
    """Derivatives in learned parameters, as tensors like these."""
    return [tensor.new_tensor(slope) for tensor, slope in zip(learned.values(), slopes.tolist())]


def to_float32(grad: Floats) -> Weights:
    """A gradient in single precision, clipped so that its square does not overflow."""
    return np.clip(grad, -LARGEST, LARGEST).astype(np.float32)


def torch_node(value: float, gradients: Sequence[Any], inputs: Sequence[Any]) -> Any:
    """Wrap a precomputed value and its gradients in ``inputs`` as a PyTorch node."""
    return _node_class().apply(value, gradients, *inputs)


@cache
def _node_class() -> Any:
    autograd: Any = pytorch().autograd
    function: Any = autograd.Function

    class Node(function):
        """A precomputed value with its gradients, which are not copied if the incoming gradient is 1."""

        @staticmethod
        def forward(ctx: Any, value: float, gradients: Sequence[Any], *inputs: Any) -> Any:
            ctx.gradients = gradients
            return inputs[0].new_tensor(value, dtype=pytorch().float64)

        @staticmethod
        @autograd.function.once_differentiable  # type: ignore[untyped-decorator]
        def backward(ctx: Any, slope: Any) -> tuple[Any, ...]:
            factor = float(slope)
            return (None, None, *(g if factor == 1.0 else g * factor for g in ctx.gradients))

    return Node


class Criterion:
    """A loss with fixed parameters, jointly learned ones (tensors), and, if it draws, a new seed per batch."""

    def __init__(self, loss: str, params: Mapping[str, Any] | None, rng: np.random.Generator) -> None:
        torch = pytorch()
        self.loss, self.rng = needs(loss, who="training"), rng
        self.params = self.loss.training_parameters(params)
        self.draws = self.loss.draws and "random_state" not in self.params
        start = Bound(self.loss, Lists([], [0]), self.params).learned
        self.learned = {
            name: torch.tensor(value, dtype=torch.float64, requires_grad=True) for name, value in start.items()
        }

    def continue_from(self, known: Mapping[str, float]) -> None:
        """Start learned parameters from known values."""
        for name in self.learned.keys() & known.keys():
            self.learned[name].data.fill_(known[name])

    def bind(self, lists: Lists) -> Bound:
        """The loss on the lists of a batch, per unit weight."""
        seed = {"random_state": int(self.rng.integers(2**31))} if self.draws else {}
        return Bound(self.loss, lists, {**self.params, **seed}, learn=self.learned)

    def __call__(self, scores: Any, lists: Lists) -> Any:
        """The loss of ragged lists, per unit weight, as a PyTorch node."""
        return bound_node(self.bind(lists), scores, self.learned)

    def learned_values(self) -> dict[str, float]:
        return numbers_of(self.learned)


@dataclass
class Training:
    """Result of a training; ``weights`` and ``learned`` are from the best epoch (without validation, the last)."""

    weights: Weights
    learned: dict[str, float]
    learning_rate: float
    best: Best[tuple[Weights, dict[str, float]]]
    diverged: bool = False

    def summary(self) -> dict[str, Any]:
        """The ranker's ``fit_summary_``."""
        return {
            "learning_rate": self.learning_rate,
            "epochs": self.best.steps,
            "best_epoch": self.best.best_step,
            "diverged": self.diverged,
            **self.best.summary(),
        }


def descend(
    weights: Weights,
    sizes: Sequence[int],
    criterion: Criterion,
    objective: Callable[[Sequence[Layer], Any], Any],
    epoch: Callable[[], Iterable[Any]],
    *,
    learning_rate: float,
    l1: float = 0.0,
    l2: float = 0.0,
    epochs: int,
    patience: int,
    judge: Callable[[Weights], float] | None,
    tell: Callable[[int, float | None], None],
    sparse: bool = False,
    also_learn: Mapping[str, Any] = MappingProxyType({}),
    first_counts: bool = False,
    falls: bool = False,
    averages_every: int | None = None,
    least: float = 0.0,
    last_share: float = 1.0,
    values: Callable[[float], Mapping[str, float]] | None = None,
) -> Training:
    """Minimize ``objective(network, batch)`` over the batches of ``epoch()`` by Adam; ``weights`` change in place.

    With ``judge`` the best epoch is kept, and training stops after ``patience`` epochs without a better one.  An
    interrupt (Ctrl-C) after the first epoch or a non-finite value also stops it.  ``sparse``: update only the rows of
    the first and last W that a batch uses (moments of other rows do not decay).  ``also_learn``: additional scalar
    tensors, whose values are in ``learned``.  ``first_counts``: the initial weights may be the best.
    ``values`` and ``least``: as in `Best`, the former for the history.  ``falls``: the rate falls to 0 along half a
    cosine over ``epochs``.  ``averages_every``: a `RunningMean` of the weights after every so many batches is judged
    and kept in their place, and the rate rises over the first batches.  ``last_share``: the last W learns at this
    share of the rate.  ``l1``: after each step the weights of the first layer are shrunk by ``l1`` times the rate; as
    steps of Adam are gradients in units of their root mean square, those stay whose mean gradient is above ``l1`` in
    this unit, whatever the scale of the loss.
    """
    torch = pytorch()
    also = {**criterion.learned, **also_learn}
    network = [tuple(torch.from_numpy(part).requires_grad_() for part in layer) for layer in layers(weights, sizes)]
    optimizers = _adams(network, list(also.values()), learning_rate, l2, sparse, last_share)
    kept = weights.copy()
    mean = None if averages_every is None else RunningMean(weights, averages_every)

    def copy(state: tuple[Weights, dict[str, float]]) -> tuple[Weights, dict[str, float]]:
        kept[:] = state[0]
        return kept, state[1]

    judge_state = None if judge is None else lambda state: judge(state[0])
    best = Best(judge_state, patience=patience, copy=copy, tell=tell, values=values, least=least)
    training = Training(kept, numbers_of(also), learning_rate, best)
    if first_counts:
        best.consider((weights, numbers_of(also)))
    with best:
        while best.steps < epochs and not best.stale and not training.diverged:
            if falls:
                set_rate(optimizers, learning_rate * 0.5 * (1.0 + np.cos(np.pi * best.steps / epochs)))
            for batch in epoch():
                value = objective(network, batch)
                if not np.isfinite(value.item()):
                    training.diverged = True
                    break
                value.backward()
                if mean is not None:
                    set_rate(optimizers, learning_rate * mean.rise())
                for optimizer in optimizers:
                    optimizer.step()
                    optimizer.zero_grad()
                if l1:
                    shrink(network[0][0], l1 * optimizers[0].param_groups[0]["lr"])
                if mean is not None:
                    mean.add(weights)
            else:
                best.see((weights if mean is None else mean.weights, numbers_of(also)))
    if not best.empty:
        training.learned = best.state[1]
    return training


def _adams(
    network: list[tuple[Any, ...]], learned: list[Any], rate: float, l2: float, sparse: bool, last_share: float = 1.0
) -> list[Any]:
    """Adam, or Adam and SparseAdam; the penalty applies to W, not to b or to learned parameters."""
    torch = pytorch()
    shares = [1.0] * (len(network) - 1) + [last_share]
    tables = [{"params": [W], "lr": rate * share, "share": share} for (W, _), share in zip(network, shares)]
    dense = [{**table, "weight_decay": l2} for table in (tables[1:-1] if sparse else tables)]
    adam = torch.optim.Adam([*dense, {"params": [b for _, b in network] + learned}], lr=rate, fused=True)
    return [adam, torch.optim.SparseAdam([tables[0], tables[-1]])] if sparse else [adam]


def shrink(W: Any, step: float) -> None:
    """Move each weight toward 0 by ``step``, in place; one that would pass 0 becomes 0."""
    torch = pytorch()
    with torch.no_grad():
        W.copy_(torch.nn.functional.softshrink(W, step))


def set_rate(optimizers: Iterable[Any], rate: float) -> None:
    """Set the learning rate of all parameters, of which those of some groups learn at a share of it."""
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = rate * group.get("share", 1.0)


def check_positive(**numbers: float) -> None:
    for name, value in numbers.items():
        if not value > 0:
            raise ValueError(f"{name} must be above 0, not {value}")


def refuse_diverged(training: Training) -> None:
    """Raise if training diverged in its first epoch."""
    if training.diverged and training.best.steps == 0:
        raise ValueError(f"training diverged in its first epoch at learning_rate={training.learning_rate}; lower it")
