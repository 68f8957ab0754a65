"""ONNX graphs from a float64 table X (rows, features) to scores (rows,), or to scores (rows, labels), for rankers of
labels.

A kind of ranker adds its nodes in ``Ranker._add_onnx``.  All rows of X are one list, for rankers that look at the list.
"""

import json
import os
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from placet.io.files import writing
from placet.kernels.rank.tree_leaves import CATEGORY, PLAIN, ZERO_IS_MISSING
from placet.lazy import import_optional
from placet.rank.tree_arrays import Forest, comparisons

OPSET, TREE_OPSET, IR_VERSION = 17, 3, 8  # supported by runtimes since 2022


def write_onnx(path: str | os.PathLike[str], n_features: int, add_scores: Callable[["OnnxGraph"], str]) -> None:
    """Write a model atomically; ``add_scores`` adds the nodes to a graph and returns the name of the last output."""
    package = import_optional("onnx", "ONNX files are written with the package onnx", "pip install 'placet[onnx]'")
    graph = OnnxGraph(package)
    last = add_scores(graph)
    shape = [-1] if graph.n_labels is None else [-1, graph.n_labels]
    graph.add("Reshape", [last, graph.constant(np.array(shape, np.int64))], output="scores")
    kinds, helper = package.TensorProto, package.helper
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "placet",
            [helper.make_tensor_value_info("X", kinds.DOUBLE, ["rows", int(n_features)])],
            [helper.make_tensor_value_info("scores", graph.kind, ["rows", *shape[1:]])],
            graph.constants,
        ),
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", TREE_OPSET)],
        producer_name="placet",
        ir_version=IR_VERSION,
    )
    if graph.labels is not None:
        helper.set_model_props(model, {"labels": json.dumps(graph.labels)})
    package.checker.check_model(model)
    with writing(Path(path)) as file:
        file.write(model.SerializeToString())


class OnnxGraph:
    """Nodes and constants, with consecutive names."""

    def __init__(self, package: Any) -> None:
        self.package = package
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.kind = package.TensorProto.DOUBLE  # type of the scores
        self.n_labels: int | None = None  # scores of a row, if it has one for every label
        self.labels: Sequence[str] | None = None  # names of the labels, which the metadata of the model hold
        self.table = "X"  # the rows to score
        self.shared: dict[Hashable, str] = {}  # tables that several rankers use

    def constant(self, values: Any) -> str:
        """Add a constant array; return its name."""
        name = f"c{len(self.constants)}"
        self.constants.append(self.package.numpy_helper.from_array(np.asarray(values, order="C"), name))
        return name

    def add(self, kind: str, inputs: list[str], output: str | None = None, **more: Any) -> str:
        """Add a node; return the name of its output."""
        name = output or f"t{len(self.nodes)}"
        self.nodes.append(self.package.helper.make_node(kind, inputs, [name], **more))
        return name

    def standardize(self, mean: Any, scale: Any, rows: str | None = None) -> str:
        """(rows - mean) / scale; by default of the table."""
        return self.add("Div", [self.add("Sub", [rows or self.table, self.constant(mean)]), self.constant(scale)])

    def weighted_sum(self, columns: Sequence[tuple[str, int, float]]) -> str:
        """Sum, in double precision, of columns (rows,) given by name, type and factor."""
        self.kind, flat = self.package.TensorProto.DOUBLE, self.constant(np.array([-1], np.int64))
        terms = []
        for name, kind, factor in columns:
            column = name if kind == self.kind else self.add("Cast", [name], to=self.kind)
            terms.append(self.add("Mul", [self.add("Reshape", [column, flat]), self.constant(np.array([factor]))]))
        return self.add("Sum", terms)


def add_network(graph: OnnxGraph, rows: str, layers: Sequence[tuple[Any, Any]]) -> str:
    """Add a network of layers (W, b) with rectified units between them; return the name of its output."""
    graph.kind = graph.package.TensorProto.FLOAT
    out = graph.add("Cast", [rows], to=graph.kind)
    for k, (W, b) in enumerate(layers):
        out = graph.add("Relu", [out]) if k else out
        out = graph.add("Add", [graph.add("MatMul", [out, graph.constant(W.T if k else W)]), graph.constant(b)])
    return out


def add_linear(graph: OnnxGraph, rows: str, coef: Any, intercept: float) -> str:
    """Add a weighted sum of the columns of a table; return the name of its output (rows, 1)."""
    graph.kind = graph.package.TensorProto.DOUBLE
    product = graph.add("MatMul", [rows, graph.constant(coef[:, None])])
    return graph.add("Add", [product, graph.constant(np.array([intercept], np.float64))])


def add_trees(graph: OnnxGraph, forest: Forest) -> str:
    """Add the trees; return the name of their sum (rows, 1)."""
    graph.kind = graph.package.TensorProto.DOUBLE
    if not len(forest.roots):  # a product with zeros would be NaN in rows with NaN
        zero = graph.package.numpy_helper.from_array(np.zeros(1))
        return graph.add("ConstantOfShape", [graph.add("Shape", [graph.table], start=0, end=1)], value=zero)
    rows, forest = add_memberships(graph, forest)
    inner = forest.feature >= 0
    how = forest.how[inner]
    if (how & ZERO_IS_MISSING).any():
        raise ValueError("trees that take zeros as missing have no ONNX form")
    tree = np.searchsorted(forest.roots, np.arange(len(forest.feature)), side="right") - 1
    to_left, at = comparisons(forest)
    value = forest.value / len(forest.roots) if forest.averaged else forest.value
    leaf = np.flatnonzero(~inner)
    from_array = graph.package.numpy_helper.from_array
    graph.kind = graph.package.TensorProto.FLOAT
    return graph.add(
        "TreeEnsembleRegressor",
        [rows],
        domain="ai.onnx.ml",
        n_targets=1,
        aggregate_function="SUM",
        post_transform="NONE",
        nodes_treeids=tree.tolist(),
        nodes_nodeids=np.arange(len(inner)).tolist(),
        nodes_featureids=np.maximum(forest.feature, 0).tolist(),
        nodes_modes=np.where(inner, "BRANCH_LEQ", "LEAF").tolist(),
        nodes_values_as_tensor=from_array(at, "thresholds"),
        nodes_truenodeids=np.where(inner, forest.left, 0).tolist(),
        nodes_falsenodeids=np.where(inner, forest.right, 0).tolist(),
        nodes_missing_value_tracks_true=(inner & to_left).astype(int).tolist(),
        target_treeids=tree[leaf].tolist(),
        target_nodeids=leaf.tolist(),
        target_ids=[0] * len(leaf),
        target_weights_as_tensor=from_array(value[leaf], "values"),
    )


def add_memberships(graph: OnnxGraph, forest: Forest) -> tuple[str, Forest]:
    """Replace splits by categories: a further column for each set of categories says who is not in it.

    A set that several splits share has one column.  Returns the name of the table, and the trees over its columns.
    """
    nodes = np.flatnonzero((forest.feature >= 0) & (forest.how & CATEGORY != 0))
    if not len(nodes):
        return graph.table, forest
    words = [forest.bits[forest.bounds[k] : forest.bounds[k + 1]] for k in forest.threshold[nodes].astype(int)]
    members = [np.flatnonzero(np.unpackbits(own.view(np.uint8), bitorder="little")) for own in words]
    column: dict[tuple[int, bytes], int] = {}
    tables: dict[int, list[tuple[int, Any]]] = {}  # feature -> (column, categories) of its sets
    place = np.empty(len(nodes), np.int64)
    for k, (node, own) in enumerate(zip(nodes.tolist(), members)):
        f = int(forest.feature[node])
        if (f, own.tobytes()) not in column:
            column[f, own.tobytes()] = forest.n_features + len(column)
            tables.setdefault(f, []).append((column[f, own.tobytes()], own))
        place[k] = column[f, own.tobytes()]
    parts, order = [graph.table], []
    for f, sets in tables.items():
        most = max(int(own.max(initial=0)) for _, own in sets) + 1
        outside = np.ones((most + 1, len(sets)))  # the last row: missing, negative or unknown
        for j, (_, own) in enumerate(sets):
            outside[own, j] = 0.0
        x = graph.add("Gather", [graph.table, graph.constant(np.array(f))], axis=1)
        above = graph.add("Greater", [x, graph.constant(np.array(-1.0))])
        below = graph.add("Less", [x, graph.constant(np.array(float(most)))])
        known = graph.add("And", [above, below])
        safe = graph.add("Where", [known, x, graph.constant(np.array(float(most)))])
        whole = graph.add("Cast", [safe], to=graph.package.TensorProto.INT64)  # toward 0, as in the kernel
        parts.append(graph.add("Gather", [graph.constant(outside), whole], axis=0))
        order += [c for c, _ in sets]
    at = {c: forest.n_features + k for k, c in enumerate(order)}
    feature, threshold, how = forest.feature.copy(), forest.threshold.copy(), forest.how.copy()
    feature[nodes] = [at[c] for c in place.tolist()]
    threshold[nodes], how[nodes] = 0.5, PLAIN
    rows = graph.add("Concat", parts, axis=1)
    return rows, replace(
        forest, n_features=forest.n_features + len(order), feature=feature, threshold=threshold, how=how
    )
