"""Listwise features in ONNX: the columns of `placet.rank.listwise.listwise_features`, with all rows as one list."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from placet.rank.saving.onnx_export import OnnxGraph

GRID = 2.0**30
"""Added columns are multiples of 1 / GRID, so that equal values are equal however their sums are rounded."""


def add_list_columns(graph: OnnxGraph, parts: Sequence[str], kernels: Sequence[Any]) -> str:
    """Append the chosen columns to the table; return the name of the wider table.

    "place" compares all pairs of rows in every feature: O(rows^2 features) time and memory.
    """
    others = [kernel for kernel in kernels if kernel != "cosine"] if "similarity" in parts else []
    if others:
        raise ValueError(f"listwise features with the kernel {others[0]!r} have no ONNX form; 'cosine' has one")
    tables: list[str] = []
    n = _number_of_rows(graph)
    if "deviation" in parts:
        tables.append(_deviations(graph))
    if "place" in parts:
        tables.append(_places(graph, n))
    if "similarity" in parts:
        tables += [_mean_cosines(graph, n)] * len(kernels)
    scaled = graph.add("Mul", [graph.add("Concat", tables, axis=1), _number(graph, GRID)])
    added = graph.add("Div", [graph.add("Round", [scaled]), _number(graph, GRID)])
    return graph.add("Concat", [graph.table, added], axis=1)


def _number(graph: OnnxGraph, value: float) -> str:
    return graph.constant(np.array(value, np.float64))


def _number_of_rows(graph: OnnxGraph) -> str:
    size = graph.add("Shape", [graph.table], start=0, end=1)
    return graph.add("Cast", [size], to=graph.package.TensorProto.DOUBLE)


def _other_rows(graph: OnnxGraph, n: str) -> str:
    """The number of other rows, at least 1."""
    return graph.add("Max", [graph.add("Sub", [n, _number(graph, 1.0)]), _number(graph, 1.0)])


def _ratio(graph: OnnxGraph, top: str, bottom: str, is_zero: str) -> str:
    """top / bottom, or 0 where ``is_zero``."""
    safe = graph.add("Where", [is_zero, _number(graph, 1.0), bottom])
    return graph.add("Where", [is_zero, _number(graph, 0.0), graph.add("Div", [top, safe])])


def _deviations(graph: OnnxGraph) -> str:
    mean = graph.add("ReduceMean", [graph.table], axes=[0], keepdims=1)
    out = graph.add("Sub", [graph.table, mean])
    spread = graph.add("Sqrt", [graph.add("ReduceMean", [graph.add("Mul", [out, out])], axes=[0], keepdims=1)])
    least = graph.add("Mul", [graph.add("Abs", [mean]), _number(graph, 1e-12)])
    return _ratio(graph, out, spread, graph.add("LessOrEqual", [spread, least]))


def _places(graph: OnnxGraph, n: str) -> str:
    """(Rows with a smaller value + rows with no larger one - 1) / 2 / other rows; 0.5 for a single row."""
    kinds = graph.package.TensorProto
    across = graph.add("Unsqueeze", [graph.table, graph.constant(np.array([0], np.int64))])  # (1, rows, features)
    down = graph.add("Unsqueeze", [graph.table, graph.constant(np.array([1], np.int64))])  # (rows, 1, features)
    counts = []
    for comparison in ("Less", "LessOrEqual"):
        below = graph.add("Cast", [graph.add(comparison, [across, down])], to=kinds.FLOAT)
        found = graph.add("ReduceSum", [below, graph.constant(np.array([1], np.int64))], keepdims=0)
        counts.append(graph.add("Cast", [found], to=kinds.DOUBLE))
    twice = graph.add("Sub", [graph.add("Add", counts), _number(graph, 1.0)])
    place = graph.add("Div", [graph.add("Mul", [twice, _number(graph, 0.5)]), _other_rows(graph, n)])
    alone = graph.add("Equal", [n, _number(graph, 1.0)])
    return graph.add("Where", [alone, _number(graph, 0.5), place])


def _mean_cosines(graph: OnnxGraph, n: str) -> str:
    """Mean over the other rows of the cosine of features scaled to [0, 1]: (u, sum of all u) - (u, u), over n - 1."""
    low = graph.add("ReduceMin", [graph.table], axes=[0], keepdims=1)
    range_ = graph.add("Sub", [graph.add("ReduceMax", [graph.table], axes=[0], keepdims=1), low])
    constant = graph.add("LessOrEqual", [range_, _number(graph, 0.0)])
    scaled = _ratio(graph, graph.add("Sub", [graph.table, low]), range_, constant)
    columns = graph.constant(np.array([1], np.int64))
    length = graph.add("Sqrt", [graph.add("ReduceSum", [graph.add("Mul", [scaled, scaled]), columns], keepdims=1)])
    unit = _ratio(graph, scaled, length, graph.add("LessOrEqual", [length, _number(graph, 0.0)]))
    total = graph.add("ReduceSum", [unit, graph.constant(np.array([0], np.int64))], keepdims=1)
    others = graph.add("Sub", [total, unit])
    dots = graph.add("ReduceSum", [graph.add("Mul", [unit, others]), columns], keepdims=1)
    return graph.add("Div", [dots, _other_rows(graph, n)])
