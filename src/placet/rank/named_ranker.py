"""A ranker by its short name, with parameters as a command or a page gives them."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from placet.data.parameters import check_parameters, parse_value
from placet.rank.monotone import directions_from_text
from placet.rank.ranker import Ranker, load, ranker_class
from placet.rank.sklearn_conventions import unknown_parameter


def make_ranker(
    name: str,
    loss: str,
    metric: str,
    given: dict[str, Any],
    random_state: int,
    own: Mapping[str, Any] = MappingProxyType({}),
) -> Ranker:
    """An unfitted ranker; an unknown parameter raises a ``ValueError`` that lists the known ones.

    ``own``: parameters that hold where no others (and no ``random_state`` but 0) are given.
    """
    kind = ranker_class(name)
    defaults = kind().get_params(deep=False)
    wrong = unknown_parameter(kind, sorted(given))
    if wrong:
        raise ValueError(f"--param {wrong}")
    for option, value in (("loss", loss), ("metric", metric)):
        if value and option not in defaults:
            raise ValueError(f"--{option} {value}: {kind.__name__} has none to choose")
    common = {key: value for key, value in (("loss", loss), ("metric", metric)) if value} | {
        "random_state": random_state
    }
    common = {
        key: value for key, value in common.items() if key in defaults and (value or key != "random_state" or not own)
    }
    values = {key: _value(key, value, defaults[key]) for key, value in given.items()}
    check_parameters(kind, values, kind.__name__)
    return kind(**{**own, **common, **values})


def _value(name: str, value: Any, default: Any) -> Any:
    """A parameter from the command line: commas separate several values; a base may be a saved model."""
    if name == "base" and isinstance(value, str) and Path(value).is_file():
        return load(value)
    if name == "monotone" and isinstance(value, str | int | float):
        return directions_from_text(str(value))
    if isinstance(value, str) and (isinstance(default, tuple) or ("," in value and "(" not in value)):
        return tuple(parse_value(part.strip()) for part in value.split(","))
    return value
