"""Document labels: the order in which a loss expects them, and the best k of each row of a score table."""

import numpy as np

from placet.kernels.jit import jit


@jit()
def own_labels_first(indptr, indices, n_labels, order):
    """Order the cells of each row of a (documents, n_labels) table: first those in ``indices``, then the others.

    O(cells).
    """
    own = np.zeros(n_labels, np.bool_)
    for d in range(len(indptr) - 1):
        start, place = d * n_labels, d * n_labels
        for k in range(indptr[d], indptr[d + 1]):
            own[indices[k]] = True
            order[place] = start + indices[k]
            place += 1
        for label in range(n_labels):
            if not own[label]:
                order[place] = start + label
                place += 1
        for k in range(indptr[d], indptr[d + 1]):
            own[indices[k]] = False


@jit()
def largest(s, label, score):
    """The best ``label.shape[1]`` columns of every row of s, best first; ties go to the lower column.

    O(columns + k * improvements) per row; a row in random order has about k log(columns / k) improvements.
    """
    k = label.shape[1]
    for d in range(len(s)):
        filled = 0
        for c in range(s.shape[1]):
            x = s[d, c]
            if filled == k and x <= score[d, k - 1]:
                continue
            place = filled if filled < k else k - 1
            while place > 0 and score[d, place - 1] < x:
                score[d, place], label[d, place] = score[d, place - 1], label[d, place - 1]
                place -= 1
            score[d, place], label[d, place] = x, c
            filled = min(filled + 1, k)
