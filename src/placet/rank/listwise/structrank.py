"""StructRank: a joint distribution over all preferences of a list, and a score fitted to it by constrained descent.

Huang and Frey, Structured ranking learning using cumulative distribution networks, NIPS 2008.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from placet.data import DataError, Lists, Queries
from placet.data.arrays import Floats, Ints
from placet.data.engines.memory import refuse_dense
from placet.kernels.losses import edge_pairs, structrank as kernels
from placet.losses import Bound
from placet.losses.structrank import check_connections
from placet.rank.feature_tables import need_dense, refuse_nan, to_dense
from placet.rank.ranker import Ranker
from placet.rank.saving.fitted_state import Array, holds
from placet.rank.validation import Best

HALVINGS = 60
STILL = 1e-7  # fraction of the norm; a run ends when an epoch moves theta by less
Scorer = Literal["nadaraya-watson", "linear", "network"]
Halving = Literal["loss", "rate", "vector", "coordinate"]
ROWS_AT_ONCE = 512

Back = Callable[[Floats], Floats]


def cumulative_network(
    s: ArrayLike, above: ArrayLike, below: ArrayLike, offsets: ArrayLike, weight: ArrayLike | None = None
) -> tuple[float, Floats]:
    """-log F of a cumulative distribution network with multivariate sigmoids, and its gradient.

    sum_c weight_c log(1 + sum_{e in c} e^(-r_e)), where function c has the edges offsets[c]:offsets[c + 1], and edge e,
    "row above[e] over row below[e]", has the margin r_e = s_above - s_below.  O(edges).  RankNet has one function per
    edge; ListMLE one per row, over the rows after it; ListNet one per row, over all others, weighted by the softmax of
    its label; fully connected StructRank (w1 = w2 = 1) one per ordered pair of edges.

    >>> value, grad = cumulative_network([0.0, 0.0, 0.0], [0, 0, 1], [1, 2, 2], [0, 2, 3])  # ListMLE: log 3 + log 2
    >>> round(value, 6)
    1.791759
    """
    s = np.asarray(s, dtype=np.float64)
    i, j, cut = (np.asarray(x, dtype=np.int64) for x in (above, below, offsets))
    w = np.ones(len(cut) - 1) if weight is None else np.asarray(weight, dtype=np.float64)
    function = np.repeat(np.arange(len(w)), np.diff(cut))
    r = -(s[i] - s[j])
    top = np.zeros(len(w))
    np.maximum.at(top, function, r)
    e = np.exp(r - top[function])
    total = np.exp(-top) + np.bincount(function, e, len(w))
    pull = w[function] * e / total[function]
    grad: Floats = np.bincount(j, pull, len(s)).astype(np.float64) - np.bincount(i, pull, len(s))
    return float(w @ (top + np.log(total))), grad


def _n_terms(n_edges: int, connections: str | float) -> int:
    if connections == "none":
        return n_edges
    if connections == "full":
        return n_edges * n_edges
    share = float(connections)
    return kernels.n_drawn(share, n_edges) if share < 1 else n_edges * int(share)


@dataclass
class Graph:
    """The order graph of one list: from its grades, or from given edges (rows numbered inside the list)."""

    grade: Floats
    above: Ints | None = None
    below: Ints | None = None

    @property
    def n_edges(self) -> int:
        if self.above is not None:
            return len(self.above)
        counts = np.unique(self.grade, return_counts=True)[1]
        return int((len(self.grade) ** 2 - (counts**2).sum()) // 2)

    def loss(
        self,
        s: Floats,
        w: Floats,
        connections: str | float,
        random_state: int,
        reduction: Literal["sum", "mean"] = "sum",
    ) -> tuple[float, Floats, Floats]:
        """Sum or mean over pairs of edges of log(1 + e^(-w1 r_e) + e^(-w2 r_f)), and its gradients in s and in w."""
        terms = _n_terms(self.n_edges, connections) if reduction == "mean" else 1
        if self.above is None:
            lists = Lists(self.grade, np.array([0, len(s)]))
            params = {"connections": connections, "random_state": random_state}
            bound = Bound("structrank", lists, params, total=terms, learn=("w1", "w2"))
            return bound.value_grad_slopes(s, {"w1": w[0], "w2": w[1]})
        return self._loss_of_edges(s, w, connections, random_state, terms)

    def _loss_of_edges(
        self, s: Floats, w: Floats, connections: str | float, random_state: int, terms: int
    ) -> tuple[float, Floats, Floats]:
        assert self.above is not None
        assert self.below is not None
        r = s[self.above] - s[self.below]
        if connections == "none":
            z = np.abs(w[0] * r)
            value = float((np.log1p(np.exp(-z)) + np.maximum(-w[0] * r, 0.0)).sum())
            ga, gb = np.exp(-np.logaddexp(0.0, w[0] * r)), np.zeros(len(r))
        else:
            a, b, ga, gb = -w[0] * r, -w[1] * r, np.zeros(len(r)), np.zeros(len(r))
            if connections == "full":
                value = edge_pairs.all_pairs(a, b, ga, gb)
            elif float(connections) < 1:
                value = kernels.drawn_pairs(a, b, float(connections), np.uint64(random_state), ga, gb)
            else:
                value = kernels.some_pairs(a, b, int(connections), np.uint64(random_state), ga, gb)
        push = w[0] * ga + w[1] * gb
        grad = np.bincount(self.below, push, len(s)) - np.bincount(self.above, push, len(s))
        return value / terms, grad / terms, -np.array([r @ ga, r @ gb]) / terms


class StructRank(Ranker):
    """A score fitted to -log F of all preferences of a list, F a product of sigmoids over pairs of edges.

    Every edge (row i preferred to j) has the margin r_e = s_i - s_j; a pair of edges costs log(1 + e^(-w1 r_e) +
    e^(-w2 r_f)).  Constraints: w1, w2 and bandwidths are nonnegative, and |theta|_1 <= ``norm``, theta = (parameters of
    the scorer, w1, w2).  Over all starts and norms, the parameters with the best ``metric`` on the validation set (or
    else the lowest training loss) are kept.  ``fit_summary_`` has the mean training loss before (at the random start)
    and after (at these parameters), unless the fit was interrupted.

    Parameters
    ----------
    scorer : str
        "nadaraya-watson": s(x) = sum_i K(x_i, x) y_i / sum_i K(x_i, x) over all training rows, K = exp(-1/2 sum_f a_f^2
        (x_f - x_if)^2) with bandwidths a >= 0; "linear"; or "network", one layer of tanh units.
    connections : str or float
        "full" (all pairs of edges), "none" (single edges), a number of random partners for each edge, or a fraction
        below 1 (random pairs per edge).  Pairs are drawn anew in every epoch, so training averages over random
        networks.
    reduction : str
        The loss of a list is the "sum" over its pairs of edges, as published, or their "mean", whose steps are
        comparable between short and long lists and need a larger ``learning_rate``.
    norm : float or sequence of float
        Bound on |theta|_1, or several to choose from.
    learning_rate : float
        Factor of a gradient step on one list; divided by sqrt(2) after each epoch.
    epochs : int
        Passes over the lists.
    starts : int
        Random starts.
    hidden : int
        Hidden units of the network.
    own_list : bool
        If False, training on a list leaves its rows out of the sum over i; the paper includes them, so that a training
        row sees its own label.
    halving : str
        How a step is made feasible.  "loss" first halves the step of each coordinate that would become negative, then
        the whole step until the norm constraint holds and the loss of the list does not rise; a step shortened this way
        halves the learning rate.  "rate", as published, permanently halves the learning rate until all constraints
        hold: a rate too large for a sum over millions of pairs is corrected in the first steps, and a run ends when w1
        or w2 reaches 0; with keep="run" it ranked better than "loss" on OHSUMED (NDCG@10 0.456 versus 0.434).
        "vector" halves only the current step, and so does "coordinate", coordinates first; with far too large a rate,
        these two end on the norm bound and stay there.
    keep : str
        "epoch": the best of all epochs; "run", as published: the best of the last epochs of all starts and norms.
    precision : str
        "single" computes the kernels of "nadaraya-watson" in float32, in half the time of "double".
    preferences : str, optional
        A relation of the ``Queries`` whose entries i, j above 0 mean that row i is preferred to row j; edges come from
        grades if None.
    metric : str
        Validation metric.
    random_state : int
        Seed of the starts, the order of lists and the connections.

    >>> import placet
    >>> data = placet.simulate.queries(60, 8, 3, noise=0.3, random_state=1)
    >>> ranker = StructRank("linear", connections=2, epochs=5, starts=1).fit(data[:40])
    >>> ranker.score(data[40:]) > 0.9
    True
    """

    _state = holds(theta_=Array("parameters"), rows_=Array("kept", "features"), labels_=Array("kept"))

    def __init__(
        self,
        scorer: Scorer = "nadaraya-watson",
        connections: str | float = "full",
        *,
        reduction: Literal["sum", "mean"] = "sum",
        norm: float | Sequence[float] = 50.0,
        learning_rate: float = 0.5,
        epochs: int = 10,
        starts: int = 3,
        hidden: int = 8,
        own_list: bool = True,
        halving: Halving = "loss",
        keep: Literal["epoch", "run"] = "epoch",
        precision: Literal["single", "double"] = "double",
        preferences: str | None = None,
        metric: str = "average_precision",
        random_state: int = 0,
    ) -> None:
        self.scorer = scorer
        self.connections = connections
        self.reduction = reduction
        self.norm = norm
        self.learning_rate = learning_rate
        self.epochs = epochs
        self.starts = starts
        self.hidden = hidden
        self.own_list = own_list
        self.halving = halving
        self.keep = keep
        self.precision = precision
        self.preferences = preferences
        self.metric = metric
        self.random_state = random_state

    def _fit(self, queries: Queries, valid: Queries | None) -> None:
        norms = np.atleast_1d(np.asarray(self.norm, dtype=np.float64)).tolist()
        self._check(norms)
        if not self.own_list and len(queries) < 2:
            raise DataError("own_list=False needs at least two queries: a list is scored by the rows of the others")
        refuse_nan(need_dense(queries.X, "StructRank needs").sum(axis=0, dtype=np.float64, initial=0.0))
        graphs = order_graphs(queries, self.preferences)
        keeps = self.scorer == "nadaraya-watson"
        self.rows_ = np.array(queries.X, np.float64) if keeps else np.zeros((0, queries.n_features))
        self.labels_ = np.array(queries.grade) if keeps else np.zeros(0)
        scorer = self._scorer(queries.n_features)
        X_valid = None if valid is None else np.asarray(valid.X, dtype=np.float64)
        on_valid = self._judge(valid, lambda state: all_scores(scorer, state[0][:-2], X_valid))
        by_loss = lambda state: -state[1]["value"]  # noqa: E731
        n_epochs = self.epochs * self.starts * len(norms)
        best = self._keep_best(self._of_kept(on_valid), n_epochs, instead=self._of_kept(by_loss))
        with best:
            for norm, start in product(norms, range(self.starts)):
                rng = np.random.default_rng([self.random_state, start])
                first = scorer.start(rng, norm)
                for epoch, theta, value in self._descend(scorer, queries, graphs, first, norm, rng, best):
                    best.see((theta, {"norm": norm, "start": start, "epoch": epoch, "value": value}, first))
        self.theta_, about, first = best.state
        ends = {
            name: self._training_loss(scorer, queries, graphs, theta)
            for name, theta in (("loss before", first), ("loss after", self.theta_))
            if not best.interrupted  # each takes nearly as long as an epoch
        }
        self.fit_summary_ = {**about, **ends, **best.summary()}

    def _of_kept(self, judge: Callable[[Any], float] | None) -> Callable[[Any], float] | None:
        """``judge``, but NaN (the worst value) for epochs that ``keep`` excludes."""
        if judge is None or self.keep == "epoch":
            return judge
        return lambda state: judge(state) if state[1]["epoch"] == self.epochs else np.nan

    def _descend(
        self,
        scorer: Any,
        queries: Queries,
        graphs: list[Graph],
        theta: Floats,
        norm: float,
        rng: np.random.Generator,
        best: Best[Any],
    ) -> Any:
        """Yield (epoch, theta, mean loss of the epoch)."""
        rate = self.learning_rate
        X = np.asarray(queries.X, dtype=np.float64)
        informative = [q for q in range(len(queries)) if graphs[q].n_edges]
        for epoch in range(1, self.epochs + 1):
            total, before = 0.0, theta
            for q in rng.permutation(informative):
                best.report_within_step()
                a, b = int(queries.offsets[q]), int(queries.offsets[q + 1])
                own = None if self.own_list else (a, b)
                s, pull_back = scorer.forward(theta[:-2], X[a:b], own)
                seed, lowers = int(rng.integers(2**31)), None
                value, g, slope = graphs[q].loss(s, theta[-2:], self.connections, seed, self.reduction)
                total += float(queries.weight[q]) * value
                gradient = float(queries.weight[q]) * np.concatenate([pull_back(g), slope])
                if self.halving == "loss":
                    lowers = self._descent_test(scorer, graphs[q], X[a:b], own, seed, value)
                theta, used = feasible_step(theta, gradient, rate, norm, scorer.n_nonnegative, self.halving, lowers)
                rate = {"loss": max(used, 0.5 * rate), "rate": used}.get(self.halving, rate)
            rate /= np.sqrt(2.0)
            ends = self.halving == "rate" and bool(np.abs(theta - before).sum() <= STILL * norm)
            yield self.epochs if ends else epoch, theta.copy(), total / float(queries.weight[informative].sum())
            if ends:
                return

    def _descent_test(
        self, scorer: Any, graph: Graph, X: Floats, own: tuple[int, int] | None, random_state: int, value: float
    ) -> Callable[[Floats], bool]:
        """theta -> whether the loss of a list at theta is at most ``value``."""

        def lowers(theta: Floats) -> bool:
            s, _ = scorer.forward(theta[:-2], X, own)
            return graph.loss(s, theta[-2:], self.connections, random_state, self.reduction)[0] <= value

        return lowers

    def _training_loss(self, scorer: Any, queries: Queries, graphs: list[Graph], theta: Floats) -> float:
        """Mean loss of the lists at fixed parameters; connections are drawn with seed ``random_state``."""
        X, total, weight = np.asarray(queries.X, dtype=np.float64), 0.0, 0.0
        for q, graph in enumerate(graphs):
            if graph.n_edges:
                a, b = int(queries.offsets[q]), int(queries.offsets[q + 1])
                s, _ = scorer.forward(theta[:-2], X[a:b], None if self.own_list else (a, b))
                value = graph.loss(s, theta[-2:], self.connections, self.random_state, self.reduction)[0]
                total, weight = total + float(queries.weight[q]) * value, weight + float(queries.weight[q])
        return total / weight

    def _scorer(self, n_features: int) -> Any:
        if self.scorer == "nadaraya-watson":
            return NadarayaWatson(self.rows_, self.labels_, np.float32 if self.precision == "single" else np.float64)
        return Linear(n_features) if self.scorer == "linear" else Network(n_features, self.hidden)

    def _scores(self, queries: Queries) -> Floats:
        X = queries.X
        refuse_dense(X, "score fewer rows at a time")
        return all_scores(self._scorer(self.n_features_in_), self.theta_[:-2], to_dense(X))

    def _check_state(self) -> None:
        if self.hidden < 1:
            raise DataError(f"a network cannot have {self.hidden} hidden units")
        n = self.n_features_in_
        expected = (n + 2) * int(self.hidden) + 2 if self.scorer == "network" else n + 2
        if len(self.theta_) != expected or (self.scorer == "nadaraya-watson") != bool(len(self.rows_)):
            raise DataError(f"{len(self.theta_)} parameters and {len(self.rows_)} rows do not fit {self.scorer!r}")

    def _check(self, norms: list[float]) -> None:
        check_connections(self.connections)
        if not norms or not all(n > 0 for n in norms) or not self.learning_rate > 0:
            raise ValueError(f"norm {self.norm} and learning_rate {self.learning_rate} must be above 0")
        if self.epochs < 1 or self.starts < 1 or self.hidden < 1:
            raise ValueError("epochs, starts and hidden must be at least 1")


def feasible_step(
    theta: Floats,
    gradient: Floats,
    rate: float,
    norm: float,
    n_nonnegative: int,
    halving: Halving = "coordinate",
    lowers: Callable[[Floats], bool] | None = None,
) -> tuple[Floats, float]:
    """theta - rate gradient, with the rate halved until |theta|_1 <= norm and constrained entries are nonnegative.

    Constrained are the first ``n_nonnegative`` entries and the last two.  ``halving`` "coordinate" and "loss" first
    halve the steps of entries that would become negative.  ``lowers(theta)``, if given, must also hold.  Returns theta
    and the rate used; if no step is feasible, both unchanged.
    """
    bound = np.zeros(len(theta), bool)
    bound[:n_nonnegative] = bound[-2:] = True
    gradient = gradient.copy()
    if halving in ("coordinate", "loss"):
        for _ in range(HALVINGS):
            below = bound & (theta - rate * gradient < 0.0)
            if not below.any():
                break
            gradient[below] *= 0.5
        else:
            gradient[below] = 0.0
    shorter = rate
    for _ in range(HALVINGS):
        new = theta - shorter * gradient
        inside = not (new[bound] < 0.0).any() and np.abs(new).sum() <= norm
        if inside and (lowers is None or lowers(new)):
            return new, shorter
        shorter *= 0.5
    return theta, rate


def order_graphs(queries: Queries, preferences: str | None) -> list[Graph]:
    """The order graph of each query: from its grades, or from the entries above 0 of a relation."""
    bounds = list(zip(queries.offsets[:-1].tolist(), queries.offsets[1:].tolist()))
    if preferences is None:
        return [Graph(np.ascontiguousarray(queries.grade[a:b])) for a, b in bounds]
    known = queries.relations or {}
    if preferences not in known:
        raise DataError(f"preferences {preferences!r} is not a relation of these queries; they have {sorted(known)}")
    matrix = known[preferences]
    graphs = []
    for a, b in bounds:
        part = (matrix[a:b, a:b] > 0).tocoo()
        own = part.row == part.col
        if own.any():
            raise DataError(f"row {a + int(part.row[own][0])} is preferred to itself ({int(own.sum())} such rows)")
        graphs.append(Graph(queries.grade[a:b], part.row.astype(np.int64), part.col.astype(np.int64)))
    if not any(graph.n_edges for graph in graphs):
        raise DataError(f"relation {preferences!r} holds no entry above 0: there is nothing to learn an order from")
    return graphs


# --- small parametric scorers, with analytic gradients ---------------------------------------------------------------
#
# A scorer has ``start(rng, norm)``: initial parameters, with w1, w2 at the end; ``forward(a, X, own)``: the scores of
# one list's rows, and a function that maps a gradient in scores to a gradient in ``a``; and ``n_nonnegative``: the
# number of parameters that must be nonnegative.


def all_scores(scorer: Any, a: Floats, X: Any) -> Floats:
    """Scores of any number of rows, computed in blocks."""
    parts = [scorer.forward(a, X[k : k + ROWS_AT_ONCE], None)[0] for k in range(0, len(X), ROWS_AT_ONCE)]
    return np.concatenate(parts) if parts else np.zeros(0)


def shrink_to_norm(theta: Floats, norm: float) -> Floats:
    """theta, scaled to half the norm if it is longer."""
    length = float(np.abs(theta).sum())
    return theta if length <= norm else theta * (0.5 * norm / length)


class NadarayaWatson:
    """s(x) = sum_i K_i y_i / sum_i K_i,  K_i = exp(-1/2 sum_f a_f^2 (x_f - x_if)^2), over the training rows.

    O(training rows x rows x features) by matrix products, in blocks of rows; d s / d a_f = -a_f sum_i p_i (y_i - s)
    (x_if - x_f)^2 with p = K / sum K.
    """

    def __init__(self, rows: Floats, labels: Floats, dtype: Any = np.float64) -> None:
        self.dtype = dtype
        self.rows = np.asarray(rows, dtype)
        self.squares = np.asarray(rows * rows, dtype)
        self.pair = np.column_stack([labels, np.ones(len(labels))]).astype(dtype)
        self.stacked = np.concatenate([labels[:, None] * rows, rows], axis=1).astype(dtype)
        self.n_nonnegative = rows.shape[1]

    def start(self, rng: np.random.Generator, norm: float) -> Floats:
        return shrink_to_norm(rng.uniform(0.0, 1.0, self.n_nonnegative + 2), norm)

    def forward(self, a: Floats, X: Floats, own: tuple[int, int] | None) -> tuple[Floats, Back]:
        a, X = np.asarray(a, self.dtype), np.asarray(X, self.dtype)
        blocks = [X[k : k + ROWS_AT_ONCE] for k in range(0, len(X), ROWS_AT_ONCE)]
        parts = [self._block(a, block, own) for block in blocks]
        s = np.concatenate([part[1] for part in parts]) if parts else np.zeros(0)

        def back(g: Floats) -> Floats:
            # sum_ri W_ri (x_if - x_rf)^2 with W_ri = g_r p_ri (y_i - s_r), without forming W: its rows sum to 0, so
            # the squares of x_rf cancel, and the other terms are products of K with a few columns
            out, at, n = np.zeros(len(a)), 0, len(a)
            for block, (K, own_s, total) in zip(blocks, parts):
                share = g[at : at + len(block)].astype(self.dtype) / total
                at += len(block)
                down = np.column_stack([share, -share * own_s]).T @ K
                across = K @ self.stacked
                out += (down * self.pair.T).sum(axis=0) @ self.squares
                inner = across[:, :n] - own_s[:, None] * across[:, n:]
                out -= 2.0 * share @ (block * inner)
            return -a.astype(np.float64) * out

        return s.astype(np.float64), back

    def _block(self, a: Any, X: Any, own: tuple[int, int] | None) -> tuple[Any, Any, Any]:
        """Kernels K (rows of X, training rows) divided by the largest of each row, scores, and row sums of K."""
        exponent = (X * a**2) @ self.rows.T
        exponent -= self.squares @ (self.dtype(0.5) * a**2)  # |x|^2 is the same for all i and cancels
        if own is not None:
            exponent[:, own[0] : own[1]] = -np.inf
        exponent -= exponent.max(axis=1, keepdims=True)
        K = np.exp(exponent, out=exponent)
        both = K @ self.pair
        return K, both[:, 0] / both[:, 1], both[:, 1]


class Linear:
    """s = X a."""

    n_nonnegative = 0

    def __init__(self, n_features: int) -> None:
        self.n_features = n_features

    def start(self, rng: np.random.Generator, norm: float) -> Floats:
        a = rng.uniform(-1.0, 1.0, self.n_features) / np.sqrt(self.n_features)
        return shrink_to_norm(np.concatenate([a, rng.uniform(0.0, 1.0, 2)]), norm)

    def forward(self, a: Floats, X: Floats, own: tuple[int, int] | None) -> tuple[Floats, Back]:
        return X @ a, lambda g: g @ X


class Network:
    """s = tanh(X V + c) u, with parameters (V, c, u) in one flat array."""

    n_nonnegative = 0

    def __init__(self, n_features: int, hidden: int) -> None:
        self.n_features, self.hidden = n_features, hidden

    def start(self, rng: np.random.Generator, norm: float) -> Floats:
        n_inner = (self.n_features + 1) * self.hidden
        inner = rng.uniform(-1.0, 1.0, n_inner) / np.sqrt(self.n_features)
        outer = rng.uniform(-1.0, 1.0, self.hidden) / np.sqrt(self.hidden)
        return shrink_to_norm(np.concatenate([inner, outer, rng.uniform(0.0, 1.0, 2)]), norm)

    def forward(self, a: Floats, X: Floats, own: tuple[int, int] | None) -> tuple[Floats, Back]:
        n = self.n_features * self.hidden
        V, c, u = a[:n].reshape(self.n_features, self.hidden), a[n : n + self.hidden], a[n + self.hidden :]
        layer = np.tanh(X @ V + c)

        def back(g: Floats) -> Floats:
            inner = np.outer(g, u) * (1.0 - layer**2)
            return np.concatenate([(X.T @ inner).ravel(), inner.sum(axis=0), g @ layer])

        return layer @ u, back
