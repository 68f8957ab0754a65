"""Sums and maxima of arrays, and sums of exponentials by their logarithms."""

import math

import numpy as np

from placet.kernels.jit import jit


@jit(fastmath={"reassoc"})
def total(x):
    """Vectorized sum of x."""
    t = 0.0
    for r in range(len(x)):
        t += x[r]
    return t


@jit(fastmath={"reassoc", "contract"})
def dot(x, y):
    """Vectorized dot product of x and y."""
    t = 0.0
    for r in range(len(x)):
        t += x[r] * y[r]
    return t


@jit()
def max_abs(x):
    """max |x_i|, 0 if there are no entries."""
    top = 0.0
    for i in range(len(x)):
        top = max(top, abs(x[i]))
    return top


@jit()
def log_add(a, b):
    """log(e^a + e^b); minus infinity represents an empty sum."""
    if a < b:
        a, b = b, a
    return a if b == -np.inf else a + math.log1p(math.exp(b - a))
