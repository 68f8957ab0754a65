"""Whether a saved ranker is what its training rows give: train it anew and compare every number."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from sklearn.base import clone

from placet.rank.saving.model_files import Kinds, encoded

TOLERANCE = 1e-6
"""Largest difference between platforms, relative to the largest number of an array."""

REPORTED = "fit_summary_"
"""What a fit says about itself: not compared, as a score does not depend on it."""


def retrained(ranker: Any, *rows: Any, valid: Any = None) -> Any:
    """A ranker of the same kind and parameters, fitted to the rows."""
    return clone(ranker).fit(*rows, valid=valid)


def differences_of_rankers(ranker: Any, again: Any, kinds: Kinds) -> tuple[list[str], bool]:
    """What differs between two rankers beyond `TOLERANCE`, in words, and whether they agree to the last digit."""
    there, here = (dict(_parts(one, kinds)) for one in (ranker, again))
    odd = sorted(set(there) ^ set(here))
    if odd:
        return [f"{odd[0]}: in one of the two models only ({len(odd)} such parts)"], False
    words = [_difference(name, there[name], here[name]) for name in there]
    same = all(_is_equal(there[name], here[name]) for name in there)
    return [one for one in words if one], same


def _parts(ranker: Any, kinds: Kinds) -> Iterator[tuple[str, Any]]:
    """Everything that is saved of a ranker: names and arrays, numbers or texts."""
    entries, arrays = encoded(ranker, kinds)
    for number, entry in enumerate(entries):
        for name, value in (entry["state"] or {}).items():
            if name != REPORTED:
                yield from _leaves(f"{name}" if len(entries) == 1 else f"ranker {number}: {name}", value, arrays)


def _leaves(name: str, value: Any, arrays: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and set(value) == {"$array"}:
        yield name, arrays[value["$array"]]
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(name if key.startswith("$") else f"{name} {key}", inner, arrays)
    elif isinstance(value, list):
        for k, inner in enumerate(value):
            yield from _leaves(f"{name}[{k}]", inner, arrays)
    else:
        yield name, value


def _is_equal(there: Any, here: Any) -> bool:
    if isinstance(there, np.ndarray) and isinstance(here, np.ndarray):
        return there.dtype == here.dtype and there.shape == here.shape and there.tobytes() == here.tobytes()
    return type(there) is type(here) and bool(there == here)


def _difference(name: str, there: Any, here: Any) -> str:
    """What differs beyond the tolerance, or nothing."""
    if _is_equal(there, here):
        return ""
    x, y = np.asarray(there), np.asarray(here)
    if x.dtype.kind not in "fiub" or y.dtype.kind not in "fiub":
        return f"{name}: {str(there)[:60]} in the model, {str(here)[:60]} trained"
    if x.shape != y.shape:
        return f"{name}: shape {x.shape} in the model, {y.shape} trained"
    apart = np.abs(x.astype(np.float64) - y.astype(np.float64))
    most = TOLERANCE * float(np.abs(y.astype(np.float64)).max(initial=0.0))
    beyond = int((~(apart <= most) & ~(np.isnan(apart) & (np.isnan(x) == np.isnan(y)))).sum())
    return f"{name}: {beyond:,} of {x.size:,} numbers differ, by up to {np.nanmax(apart):.3g}" if beyond else ""
