"""Tridiagonal systems over chains: unknown u is linked to following[u] > u (-1 at a chain's end), entry -link[u]."""

from placet.kernels.jit import jit


@jit()
def factor(diagonal, link, following, pivot, ratio):
    """Factor T = L D L': write D to ``pivot`` and minus the off-diagonal entries of L to ``ratio``.  O(u)."""
    pivot[:] = diagonal
    for u in range(len(pivot)):
        ratio[u] = 0.0
        v = following[u]
        if v >= 0:
            ratio[u] = link[u] / pivot[u]
            pivot[v] -= link[u] * ratio[u]


@jit()
def solve(pivot, ratio, following, b):
    """Overwrite b (u,) with the solution.  O(u)."""
    for u in range(len(b)):
        v = following[u]
        if v >= 0:
            b[v] += ratio[u] * b[u]
    for u in range(len(b) - 1, -1, -1):
        b[u] /= pivot[u]
        v = following[u]
        if v >= 0:
            b[u] += ratio[u] * b[v]


@jit()
def inverse(pivot, ratio, following, own, beside):
    """Write the inverse's diagonal to ``own`` and its entries at links to ``beside`` (u,).  O(u)."""
    for u in range(len(own) - 1, -1, -1):
        own[u] = 1.0 / pivot[u]
        beside[u] = 0.0
        v = following[u]
        if v >= 0:
            beside[u] = ratio[u] * own[v]
            own[u] += ratio[u] * beside[u]


@jit()
def add_product(diagonal, link, following, v, out):
    """out += T v.  O(u)."""
    for u in range(len(v)):
        out[u] += diagonal[u] * v[u]
        w = following[u]
        if w >= 0:
            out[u] -= link[u] * v[w]
            out[w] -= link[u] * v[u]


@jit()
def scatter_links(following, values, out):
    """out_u += v, out_following -= v for every link.  O(u)."""
    for u in range(len(values)):
        v = following[u]
        if v >= 0:
            out[u] += values[u]
            out[v] -= values[u]
