"""Training of networks: losses of the table as PyTorch sees them, and Adam with early stopping."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placet.data import Lists
from placet.data.arrays import Floats
from placet.data.errors import one_of
from placet.losses import LOSSES, Bound
from placet.rank.network import Layer, Weights, layers, pytorch
from placet.rank.objective import learnt_for, parameters_for

LARGEST = 1e18  # of a gradient in single precision: Adam squares it


def torch_loss(loss: str, scores: Any, lists: Lists, **params: Any) -> Any:
    """A loss of ``LOSSES`` as a PyTorch number: for people who keep their own network and training loop.

    ``scores`` (rows,): a tensor; ``lists`` cut its rows, ragged, without padding.  Parameters that a loss learns
    (``losses.LEARNT``) may be tensors and receive gradients too.  Differentiable once.

    >>> s = pytorch().zeros(3, requires_grad=True)
    >>> value = torch_loss("pl-partition", s, Lists([1, 1, 0], [0, 3]))
    >>> round(value.item(), 4)  # log 3: each of three equals may be the last
    1.0986
    >>> value.backward()
    >>> s.grad.numpy().round(4)
    array([-0.4167, -0.4167,  0.8333], dtype=float32)
    """
    check_loss(loss)
    torch = pytorch()
    learnt = {name: value for name, value in params.items() if isinstance(value, torch.Tensor)}
    numbers = {name: float(value.detach()) if name in learnt else value for name, value in params.items()}
    rows = scores.detach().to("cpu", torch.float64).numpy()
    fixed = {name: value for name, value in numbers.items() if name not in learnt}
    values = {name: numbers[name] for name in learnt}
    value, grad, slopes = Bound(loss, lists, fixed, total=1.0, learn=learnt).value_grad_slopes(rows, values)
    back = torch.from_numpy(single(grad) if scores.dtype == torch.float32 else grad).to(scores.device, scores.dtype)
    by_name = [tensor.new_tensor(slope) for tensor, slope in zip(learnt.values(), slopes.tolist())]
    return known(value, [back, *by_name], [scores, *learnt.values()])


def single(grad: Floats) -> NDArray[np.float32]:
    """A gradient in single precision, held to what can be squared."""
    return np.clip(grad, -LARGEST, LARGEST).astype(np.float32)


def known(value: float, gradients: Sequence[Any], inputs: Sequence[Any]) -> Any:
    """A number as a function of ``inputs`` with the given gradients."""
    return _known().apply(value, gradients, *inputs)


@cache
def _known() -> Any:
    autograd: Any = pytorch().autograd
    function: Any = autograd.Function

    class Known(function):
        """A number whose gradients came with it; used once in a sum they are passed on without a copy."""

        @staticmethod
        def forward(ctx: Any, value: float, gradients: Sequence[Any], *inputs: Any) -> Any:
            ctx.gradients = gradients
            return inputs[0].new_tensor(value, dtype=pytorch().float64)

        @staticmethod
        @autograd.function.once_differentiable
        def backward(ctx: Any, slope: Any) -> tuple[Any, ...]:
            factor = float(slope)
            return (None, None, *(g if factor == 1.0 else g * factor for g in ctx.gradients))

    return Known


def check_loss(loss: str) -> None:
    one_of(loss, LOSSES, "loss")


class Criterion:
    """A loss with its parameters: given, learnt jointly (as tensors), and a new seed per call where it draws."""

    def __init__(self, loss: str, params: Mapping[str, Any] | None, rng: np.random.Generator) -> None:
        check_loss(loss)
        torch = pytorch()
        self.loss, self.params, self.rng = loss, parameters_for(loss, params), rng
        self.draws = LOSSES[loss].draws and "random_state" not in self.params
        self.learnt = {
            name: torch.tensor(start, dtype=torch.float64, requires_grad=True)
            for name, start in learnt_for(loss, self.params).items()
        }

    def drawn(self) -> dict[str, Any]:
        """The given parameters, with a seed of this call's own where the loss draws."""
        return {**self.params, "random_state": int(self.rng.integers(2**31))} if self.draws else self.params

    def __call__(self, scores: Any, lists: Lists) -> Any:
        """The loss of ragged lists as a PyTorch number."""
        return torch_loss(self.loss, scores, lists, **self.drawn(), **self.learnt)

    def learnt_values(self) -> dict[str, float]:
        return {name: float(value.detach()) for name, value in self.learnt.items()}


@dataclass
class Training:
    """How a training went; ``weights`` and ``learnt`` are those of the best epoch (of the last, without validation)."""

    weights: Weights
    learnt: dict[str, float]
    learning_rate: float
    epochs: int = 0
    best_epoch: int = 0
    validation: float | None = None
    interrupted: bool = False
    diverged: bool = False

    def summary(self) -> dict[str, Any]:
        """What a ranker keeps of it."""
        names = ("learning_rate", "epochs", "best_epoch", "validation", "interrupted", "diverged")
        return {name: getattr(self, name) for name in names}


def descend(
    weights: Weights,
    sizes: Sequence[int],
    criterion: Criterion,
    objective: Callable[[Sequence[Layer], Any], Any],
    epoch: Callable[[], Iterable[Any]],
    *,
    learning_rate: float,
    l2: float = 0.0,
    epochs: int,
    patience: int,
    validate: Callable[[Weights, dict[str, float]], float] | None,
    tell: Callable[[int, float | None], None],
    sparse: bool = False,
) -> Training:
    """Minimise ``objective(network, batch)`` over the batches of ``epoch()`` by Adam; ``weights`` change in place.

    With ``validate`` the best epoch is kept, and ``patience`` epochs without a better one end the training.  An
    interrupt (Ctrl-C) and a value that is not finite end it too.  ``sparse``: the first and last W are changed only in
    the rows that a batch touches (their moments stand still in between).
    """
    torch = pytorch()
    network = [tuple(torch.from_numpy(part).requires_grad_() for part in layer) for layer in layers(weights, sizes)]
    optimisers = _adams(network, list(criterion.learnt.values()), learning_rate, l2, sparse)
    state = Training(weights.copy(), criterion.learnt_values(), learning_rate)
    try:
        while state.epochs < epochs and (validate is None or state.epochs - state.best_epoch < patience):
            for batch in epoch():
                value = objective(network, batch)
                if not np.isfinite(value.item()):
                    state.diverged = True
                    return state
                value.backward()
                for optimiser in optimisers:
                    optimiser.step()
                    optimiser.zero_grad()
            state.epochs += 1
            found = None if validate is None else validate(weights, criterion.learnt_values())
            if found is None or state.validation is None or found > state.validation:
                state.weights[:] = weights
                state.learnt, state.best_epoch, state.validation = criterion.learnt_values(), state.epochs, found
            tell(state.epochs, found)
    except KeyboardInterrupt:
        state.interrupted = True
        if validate is None:
            state.weights[:] = weights
    return state


def _adams(network: list[tuple[Any, ...]], learnt: list[Any], rate: float, l2: float, sparse: bool) -> list[Any]:
    """Adam for all, or Adam and its sparse form; the penalty is on W, not on b or on what the loss learns."""
    torch = pytorch()
    tables = [network[0][0], network[-1][0]] if sparse else []
    outer = {id(tensor) for tensor in tables}
    dense = [W for W, _ in network if id(W) not in outer]
    rest = [b for _, b in network if id(b) not in outer] + learnt
    groups: list[dict[str, Any]] = [{"params": dense, "weight_decay": l2}, {"params": rest}]
    adam = torch.optim.Adam([group for group in groups if group["params"]], lr=rate, fused=True)
    return [adam, torch.optim.SparseAdam(tables, lr=rate)] if sparse else [adam]
