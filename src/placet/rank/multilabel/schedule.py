"""How a network of labels is trained: its rates and batches, when it stops, and what of its weights is kept."""

import math
from typing import NamedTuple

RATE = 3e-3  # learning rate where weights are averaged
MEANS = 8  # times an epoch that the weights are added to their mean
RATES = (1e-4, 1e-3, 1e-2)  # where they are not
NOISE = 0.1  # a third of a typical deviation of a metric between documents
APART = 2  # labels per unit of the last hidden layer up to which first vectors of labels are orthogonal, if averaged
LABEL_SHARE = 0.3  # share of the rate at which such vectors are learned, and so stay nearly orthogonal
LEAST = 0.003  # rises by more than this count, however few the validation documents are
PATIENCE = 3_840  # documents


class Schedule(NamedTuple):
    """Documents per batch, epochs of patience, batches between weights that are averaged (None: they are not).

    ``least`` is that of `Best`: a third of a typical standard error of a metric on the validation documents, or less.
    """

    batch: int
    patience: int
    averages_every: int | None
    least: float


def schedule_for(n: int, n_valid: int, batch: int | None, patience: int | None, *, averaged: bool) -> Schedule:
    """The schedule for n training and n_valid validation documents; None: chosen by their number.

    A mean of weights hardly varies between epochs, so that it needs less patience: two epochs, or more, so that they
    have 3,840 documents (or 300 batches, if these come first).

    >>> schedule_for(12_920, 0, None, None, averaged=False)
    Schedule(batch=128, patience=5, averages_every=None, least=0.0)
    >>> schedule_for(112, 0, None, None, averaged=False)[:2], schedule_for(112, 0, 128, None, averaged=False)[:2]
    ((6, 16), (128, 300))
    >>> schedule_for(12_920, 2_500, None, None, averaged=True)
    Schedule(batch=128, patience=2, averages_every=12, least=0.002)
    >>> [schedule_for(n, 40, None, None, averaged=True).patience for n in (3_660, 842, 112)]
    [2, 5, 16]
    """
    size = min(128, max(1, -(-n // 20))) if batch is None else batch
    batches = max(1, -(-n // size))
    of_batches = -(-300 // batches)
    if patience is None:
        patience = max(2, min(-(-PATIENCE // n), of_batches)) if averaged else max(5, of_batches)
    if not averaged:
        return Schedule(size, patience, None, 0.0)
    least = min(LEAST, NOISE / math.sqrt(n_valid)) if n_valid else 0.0
    return Schedule(size, patience, max(1, batches // MEANS), least)
