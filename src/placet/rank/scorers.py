"""Scores of rows by small parametric functions with gradients by hand: kernel smoother, linear, one hidden layer.

A scorer has ``start(rng, norm)``, the first parameters with w1, w2 at the end; ``forward(a, X, own)``, scores of the
rows of one list and the function that brings a gradient in scores back to a gradient in ``a``; and ``n_nonnegative``,
how many of the parameters must not be negative.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from placet.data.arrays import Floats

Back = Callable[[Floats], Floats]
SCORERS = ("nadaraya-watson", "linear", "network")
ROWS_AT_ONCE = 512


def all_scores(scorer: Any, a: Floats, X: Floats) -> Floats:
    """Scores of any number of rows, block by block."""
    parts = [scorer.forward(a, X[k : k + ROWS_AT_ONCE], None)[0] for k in range(0, len(X), ROWS_AT_ONCE)]
    return np.concatenate(parts) if parts else np.zeros(0)


def within(theta: Floats, norm: float) -> Floats:
    """theta, scaled to half the norm where it is longer."""
    length = float(np.abs(theta).sum())
    return theta if length <= norm else theta * (0.5 * norm / length)


class NadarayaWatson:
    """s(x) = sum_i K_i y_i / sum_i K_i,  K_i = exp(-1/2 sum_f a_f^2 (x_f - x_if)^2), over the rows kept.

    O(rows kept x rows x features) by matrix products, in blocks of rows; d s / d a_f = -a_f sum_i p_i (y_i - s) (x_if -
    x_f)^2 with p = K / sum K.
    """

    def __init__(self, rows: Floats, labels: Floats) -> None:
        self.rows, self.squares = rows, rows * rows
        self.pair = np.column_stack([labels, np.ones(len(labels))])
        self.stacked = np.concatenate([labels[:, None] * rows, rows], axis=1)
        self.n_nonnegative = rows.shape[1]

    def start(self, rng: np.random.Generator, norm: float) -> Floats:
        return within(rng.uniform(0.0, 1.0, self.n_nonnegative + 2), norm)

    def forward(self, a: Floats, X: Floats, own: tuple[int, int] | None) -> tuple[Floats, Back]:
        blocks = [X[k : k + ROWS_AT_ONCE] for k in range(0, len(X), ROWS_AT_ONCE)]
        parts = [self._block(a, block, own) for block in blocks]
        s = np.concatenate([part[1] for part in parts]) if parts else np.zeros(0)

        def back(g: Floats) -> Floats:
            # sum_ri W_ri (x_if - x_rf)^2 with W_ri = g_r p_ri (y_i - s_r), never made: its rows sum to 0, so the
            # squares of x_rf drop out, and the rest are products of K with a few columns
            out, at, n = np.zeros(len(a)), 0, len(a)
            for block, (K, own_s, total) in zip(blocks, parts):
                share = g[at : at + len(block)] / total
                at += len(block)
                down = np.column_stack([share, -share * own_s]).T @ K
                across = K @ self.stacked
                out += (down * self.pair.T).sum(axis=0) @ self.squares
                inner = across[:, :n] - own_s[:, None] * across[:, n:]
                out -= 2.0 * share @ (block * inner)
            return -a * out

        return s, back

    def _block(self, a: Floats, X: Floats, own: tuple[int, int] | None) -> tuple[Floats, Floats, Floats]:
        """Kernels K (rows of X, rows kept) over their largest, scores, and sums of K."""
        exponent = (X * a**2) @ self.rows.T
        exponent -= 0.5 * (self.squares @ a**2)  # |x|^2 is the same for all i and drops out
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
        return within(np.concatenate([a, rng.uniform(0.0, 1.0, 2)]), norm)

    def forward(self, a: Floats, X: Floats, own: tuple[int, int] | None) -> tuple[Floats, Back]:
        return X @ a, lambda g: g @ X


class Network:
    """s = tanh(X V + c) u, parameters (V, c, u) in one row."""

    n_nonnegative = 0

    def __init__(self, n_features: int, hidden: int) -> None:
        self.n_features, self.hidden = n_features, hidden

    def start(self, rng: np.random.Generator, norm: float) -> Floats:
        n_inner = (self.n_features + 1) * self.hidden
        inner = rng.uniform(-1.0, 1.0, n_inner) / np.sqrt(self.n_features)
        outer = rng.uniform(-1.0, 1.0, self.hidden) / np.sqrt(self.hidden)
        return within(np.concatenate([inner, outer, rng.uniform(0.0, 1.0, 2)]), norm)

    def forward(self, a: Floats, X: Floats, own: tuple[int, int] | None) -> tuple[Floats, Back]:
        n = self.n_features * self.hidden
        V, c, u = a[:n].reshape(self.n_features, self.hidden), a[n : n + self.hidden], a[n + self.hidden :]
        layer = np.tanh(X @ V + c)

        def back(g: Floats) -> Floats:
            inner = np.outer(g, u) * (1.0 - layer**2)
            return np.concatenate([(X.T @ inner).ravel(), inner.sum(axis=0), g @ layer])

        return layer @ u, back
