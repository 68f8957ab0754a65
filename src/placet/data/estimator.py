"""What every model of aggregation shares: parameters that are read, set, copied and checked, as scikit-learn's are."""

import inspect
from collections.abc import Mapping
from copy import deepcopy
from typing import Any, ClassVar, Self

from placet.data.parameters import check_names, check_parameters


class Estimator:
    """A model whose parameters are the arguments of ``__init__``, stored under their names.

    ``sklearn.base.clone`` and tools that call ``get_params`` work with it; importing scikit-learn takes a second.

    >>> class Model(Estimator):
    ...     def __init__(self, prior: float = 1.0, ties: str = "none"):
    ...         self.prior, self.ties = prior, ties
    >>> Model(ties="davidson")
    Model(ties='davidson')
    >>> Model().set_params(prior=2.0).get_params()
    {'prior': 2.0, 'ties': 'none'}
    """

    _defaults: ClassVar[Mapping[str, Any]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._defaults = {name: one.default for name, one in inspect.signature(cls).parameters.items()}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters; if ``deep``, also those of a parameter that is a model, as ``name__its_name``."""
        found = {name: getattr(self, name) for name in self._defaults}
        if deep:
            inner = [(name, value) for name, value in found.items() if isinstance(value, Estimator)]
            found |= {f"{name}__{key}": own for name, value in inner for key, own in value.get_params().items()}
        return found

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, those of an inner model as ``name__its_name``; returns the model."""
        for name, value in params.items():
            outer, _, inner = name.partition("__")
            check_names([outer], self._defaults, type(self).__name__)
            if inner:
                getattr(self, outer).set_params(**{inner: value})
            else:
                setattr(self, name, value)
        return self

    def unfitted(self, **changes: Any) -> Self:
        """A model with copies of the same parameters, except for ``changes``, that is not fitted."""
        own = self.get_params(deep=False) | changes
        copies = {k: v.unfitted() if isinstance(v, Estimator) else deepcopy(v) for k, v in own.items()}
        return type(self)(**copies)

    def check_parameters(self) -> None:
        """Raise ``ValueError`` if a parameter does not match the annotation of its argument."""
        given = self._changed()
        if given:
            check_parameters(type(self), given, repr(getattr(self, "method", type(self).__name__)))

    def _changed(self) -> dict[str, Any]:
        """Parameters that are not at their defaults."""
        both = ((name, getattr(self, name), usual) for name, usual in self._defaults.items())
        return {name: value for name, value, usual in both if value is not usual and repr(value) != repr(usual)}

    def __repr__(self) -> str:
        shown = (f"{name}={value!r}" for name, value in self._changed().items())
        return f"{type(self).__name__}({', '.join(shown)})"
