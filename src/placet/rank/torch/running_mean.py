"""A running mean of the weights of a network in training."""

from placet.rank.torch.network import Weights, pytorch

RISE = 30  # batches over which the learning rate rises


class RunningMean:
    """The mean of the weights after every so many batches, the k-th of them with a weight of about k cubed.

    It is as steady as weights at the end of a training whose rate falls to 0, whenever the training ends.

    >>> import numpy as np
    >>> mean = RunningMean(np.zeros(1, np.float32), every=2)
    >>> for x in (9.0, 1.0, 9.0, 1.0):
    ...     mean.add(np.full(1, x, np.float32))
    >>> mean.weights
    array([1.], dtype=float32)
    """

    def __init__(self, weights: Weights, every: int) -> None:
        self.weights, self.every = weights.copy(), every
        self.batches = 0

    def rise(self) -> float:
        """The share of the full learning rate for the next batch: a mean should not begin with leaps."""
        return min(1.0, (self.batches + 1) / RISE)

    def add(self, weights: Weights) -> None:
        """Count a batch, and take in the weights after it if it is their turn."""
        self.batches += 1
        k, rest = divmod(self.batches, self.every)
        if not rest:
            torch = pytorch()
            torch.from_numpy(self.weights).lerp_(torch.from_numpy(weights), 4.0 / (k + 3.0))
