"""Tridiagonal systems over chains: unknown u is linked to next[u] > u (-1 where its chain ends), entry -link[u]."""

from placet.kernels.jit import jit


@jit()
def factor(diagonal, link, following, pivot, ratio):
    """D of L D L' into ``pivot``, and minus the entries of L, which are those of links, into ``ratio``.  O(u)."""
    pivot[:] = diagonal
    for u in range(len(pivot)):
        ratio[u] = 0.0
        v = following[u]
        if v >= 0:
            ratio[u] = link[u] / pivot[u]
            pivot[v] -= link[u] * ratio[u]


@jit()
def solve(pivot, ratio, following, b):
    """Overwrite b (u,) by the solution.  O(u)."""
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
    """Of the inverse: the diagonal into ``own`` and the entries at links into ``beside`` (u,).  O(u)."""
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
    """out_u += v, out_next -= v for every link.  O(u)."""
    for u in range(len(values)):
        v = following[u]
        if v >= 0:
            out[u] += values[u]
            out[v] -= values[u]
