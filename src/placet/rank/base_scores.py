"""Scores of a base ranker, whatever it is: ours, LightGBM's, anything with ``predict``, or a column of the features."""

from typing import Any

import numpy as np
from sklearn.base import clone

from placet.data import DataError, Queries
from placet.data.arrays import Floats
from placet.rank import files
from placet.rank.ranker import Ranker


def fitted(base: Any, queries: Queries, valid: Queries | None, folds: int, random_state: int) -> tuple[Any, Floats]:
    """The fitted base and its scores of the training rows.

    An unfitted ranker of Placet is cloned and fitted; with ``folds`` >= 2 its scores are out of fold, so that what
    is learnt on top of them does not lean on an overfitted base.
    """
    if not (isinstance(base, Ranker) and not hasattr(base, "n_features_in_")):
        return base, scored(base, queries)
    own = clone(base).fit(queries, valid=valid)
    if folds < 2:
        return own, scored(own, queries)
    if folds > len(queries):
        raise ValueError(f"folds {folds} must not be more than the {len(queries)} queries")
    part = np.random.default_rng(random_state).permutation(len(queries)) % folds
    out = np.empty(len(queries.grade))
    of_row = part[queries.query]
    for k in range(folds):
        out[of_row == k] = scored(clone(base).fit(queries[part != k], valid=valid), queries[part == k])
    return own, out


def scored(base: Any, queries: Queries) -> Floats:
    """Scores (rows,) of the base, checked."""
    if isinstance(base, (int, np.integer, str)) and not isinstance(base, bool):
        column = queries.X[:, [_column(base, queries)]]
        found = np.asarray(column.toarray() if hasattr(column, "toarray") else column)[:, 0]
    elif isinstance(base, Ranker):
        found = base.predict(queries)
    elif hasattr(base, "predict"):
        found = np.asarray(base.predict(queries.X) if queries.X.shape[0] else [], dtype=np.float64)
    else:
        raise ValueError(
            f"base {base!r} must be a fitted ranker with predict, or the number or name of a column of scores"
        )
    found = np.asarray(found, dtype=np.float64)
    if found.shape != (len(queries.grade),):
        raise DataError(f"the base gives scores of shape {found.shape} for {len(queries.grade)} rows")
    bad = ~np.isfinite(found)
    if bad.any():
        raise DataError(f"row {int(np.argmax(bad))}: the base gives {found[bad.argmax()]} ({bad.sum()} such rows)")
    return found


def _column(base: Any, queries: Queries) -> int:
    if isinstance(base, str):
        if queries.features is None or base not in queries.features:
            raise DataError(f"base {base!r} is not the name of a column; they are {list(queries.features or ())[:20]}")
        return queries.features.index(base)
    if not -queries.n_features <= base < queries.n_features:
        raise DataError(f"base {base} is not the number of a column; there are {queries.n_features}")
    return int(base)


def packed(base: Any) -> dict[str, Any]:
    """The base as entries of a saved state, all of whose names start with "base"."""
    if isinstance(base, (int, np.integer, str)):
        return {"base_kind": "column", "base_column": base if isinstance(base, str) else int(base)}
    if isinstance(base, Ranker) and type(base).__name__ in files.KINDS:
        names = (*base._common, *base._state)
        state = {f"base/{name}": getattr(base, name) for name in names}
        return {"base_kind": type(base).__name__, "base_params": base.get_params(deep=False), **state}
    text = getattr(getattr(base, "booster_", base), "model_to_string", None)
    if text is not None:
        return {"base_kind": "lightgbm", "base_trees": np.frombuffer(text().encode(), np.uint8)}
    raise ValueError(
        f"a base of type {type(base).__name__} cannot be saved; use a ranker of Placet or LightGBM, or a column"
    )


def unpacked(state: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    """What is left of a saved state without the base, and the base."""
    own = {name: value for name, value in state.items() if not name.startswith("base")}
    kind = state.get("base_kind")
    if kind == "column":
        return own, state.get("base_column")
    if kind == "lightgbm":
        from placet.rank.trees import lightgbm

        lgb = lightgbm()
        try:
            return own, lgb.Booster(model_str=state["base_trees"].tobytes().decode())
        except (KeyError, UnicodeDecodeError, lgb.basic.LightGBMError) as error:
            raise DataError(f"the base of this model is damaged ({error})") from None
    if kind not in files.KINDS or not isinstance(state.get("base_params"), dict):
        raise DataError(f"the base of this model is of kind {kind!r}, which is unknown; update Placet to read it")
    from importlib import import_module

    inner = {name[len("base/") :]: value for name, value in state.items() if name.startswith("base/")}
    return own, getattr(import_module(files.KINDS[kind]), kind).from_saved(state["base_params"], inner)
