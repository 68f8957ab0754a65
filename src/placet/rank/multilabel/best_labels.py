"""The best labels of every document, and how good they are."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placet.data.arrays import Floats
from placet.io import Judged, judge_labels
from placet.kernels.rank import label_order as kernels
from placet.rank.query_rows import mean_defined
from placet.rank.torch.network import Layer, network_scores

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

SCORES_AT_ONCE = 1 << 22  # scores in memory during prediction: 16 MB


class Top(NamedTuple):
    """The best labels of documents: ``label`` and ``score`` (documents, k), best first."""

    label: NDArray[np.int64]
    score: NDArray[np.float32]
    n_labels: int

    def matrix(self) -> "csr_matrix":
        """Scores (documents, labels) as a CSR matrix that stores only these entries, in this order."""
        from scipy.sparse import csr_matrix

        n, k = self.label.shape
        entries = self.score.ravel().astype(np.float64), self.label.ravel(), k * np.arange(n + 1)
        return csr_matrix(entries, shape=(n, self.n_labels))

    def judge(self, Y: "csr_matrix") -> Judged:
        """Pair with the true labels, in the form that metrics expect; labels beyond ``n_labels`` are not proposed."""
        return judge_labels(self._replace(n_labels=Y.shape[1]).matrix(), Y)


def best_labels(network: Sequence[Layer], X: "csr_matrix", k: int) -> Top:
    """The best k labels of every row, computed in blocks of rows.  O(rows * labels) time."""
    n_labels = len(network[-1][1])
    label, score = np.empty((X.shape[0], k), np.int64), np.empty((X.shape[0], k), np.float32)
    step = max(1, SCORES_AT_ONCE // n_labels)
    for a in range(0, X.shape[0], step):
        kernels.largest(network_scores(network, X[a : a + step]), label[a : a + step], score[a : a + step])
    return Top(label, score, n_labels)


def means_over_documents(
    metrics: Sequence[Any], judged: Judged, propensity: Floats, weight: Floats | None = None
) -> list[float]:
    """Mean of each metric over the documents for which it is defined."""
    of_row = propensity[judged.name] if judged.name is not None else None
    values = [m(judged.score, judged.grade, judged.offsets, propensity=of_row) for m in metrics]
    return [mean_defined(value, weight) for value in values]
