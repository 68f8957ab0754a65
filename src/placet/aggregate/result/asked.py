"""What a result answers: the data and the question in full, so that it can be asked again of other data."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, eq=False, repr=False)
class Asked:
    """The ``data`` of a result, the method, its parameters as given, and the settings of the door.

    The door is called as ``door(data, method, bootstrap=, random_state=, **params)``; ``fragility(board, asked,
    **options)`` says how little would change the result, ``certificate(board, asked, level, **options)`` is what
    others need to check it, and ``seconds(asked, method)`` the expected time of a fit.
    """

    data: Any
    method: str | None
    params: Mapping[str, Any]
    bootstrap: int
    random_state: int
    door: Callable[..., Any]
    fragility: Callable[..., Any]
    certificate: Callable[..., Any]
    seconds: Callable[["Asked", str], float]

    @property
    def items(self) -> tuple[Any, ...]:
        """The items of the data."""
        return tuple(getattr(self.data, "item_names", None) or self.data.items)

    def again(self, data: Any, method: str | None, **changes: Any) -> Any:
        """The result for other data."""
        given = {"bootstrap": self.bootstrap, "random_state": self.random_state, **self.params}
        return self.door(data, method, **given | changes)
