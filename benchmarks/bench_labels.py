"""Speed of label ranking: python -m benchmarks.bench_labels [part ...] [--threads 2] [--quick]

loss    983 labels, 19 relevant, 128 documents: the loss with its gradient against the forward and backward pass of the network
scale   200,000 labels, 75 relevant: `pl-partition` against binary cross-entropy, both with gradients
epoch   one epoch of Delicious (target: 10 s on 2 cores), from PLACET_DATA or ../shared/data
"""

from collections.abc import Callable

import numpy as np
import torch

import placet
from benchmarks.harness import compare, main
from experiments.common import data_folder
from placet.rank import LabelRanker
from placet.rank.multilabel.documents import OwnLabels
from placet.rank.multilabel.label_losses import mean_loss
from placet.rank.torch import network as net
from placet.rank.torch.neural import Criterion
from placet.threads import get_threads

BATCH = 128


def own_labels(n_labels: int, n_own: int, rng: np.random.Generator) -> OwnLabels:
    label = np.concatenate([np.sort(rng.choice(n_labels, n_own, replace=False)) for _ in range(BATCH)])
    return OwnLabels(label, np.ones(len(label)), n_own * np.arange(BATCH + 1))


def loss_of(name: str, table: torch.Tensor, own: OwnLabels) -> Callable[[], None]:
    """A function that computes the loss and its gradient with respect to the table of scores."""
    criterion = Criterion(name, None, np.random.default_rng(0))

    def run() -> None:
        table.grad = None
        mean_loss(criterion, table, own).backward()

    return run


def cross_entropy(table: torch.Tensor, own: OwnLabels) -> Callable[[], None]:
    cell = torch.from_numpy(own.document), torch.from_numpy(own.label)

    def run() -> None:
        table.grad = None
        target = torch.zeros_like(table)
        target[cell] = 1.0
        torch.nn.functional.binary_cross_entropy_with_logits(table, target).backward()

    return run


def loss(quick: bool) -> None:
    torch.set_num_threads(get_threads())
    rng, sizes = np.random.default_rng(0), (500, 256, 983)
    X = placet.simulate.queries(1, BATCH, sizes[0], density=0.037, random_state=1).X
    network = [
        tuple(torch.from_numpy(part).requires_grad_() for part in layer)
        for layer in net.layers(net.first_weights(sizes, rng), sizes)
    ]
    rows, back = net.as_input(X), torch.ones(BATCH, sizes[-1])
    own = own_labels(sizes[-1], 19, rng)
    table = net.forward(network, rows).detach().requires_grad_()

    def passes() -> None:
        net.forward(network, rows).backward(back)

    runs = {"pl-partition": loss_of("pl-partition", table, own), "network": passes}
    runs |= {name: loss_of(name, table, own) for name in ("pl-lower-bound", "ranknet", "ranksvm")}
    runs["binary cross-entropy"] = cross_entropy(table, own)
    compare(f"labels 983 own 19 threads {get_threads()}", runs, repeat=31)


def scale(quick: bool) -> None:
    torch.set_num_threads(get_threads())
    n_labels = 20_000 if quick else 200_000
    rng = np.random.default_rng(0)
    table = torch.from_numpy(rng.normal(size=(BATCH, n_labels)).astype(np.float32)).requires_grad_()
    own = own_labels(n_labels, 75, rng)
    runs = {"pl-partition": loss_of("pl-partition", table, own), "binary cross-entropy": cross_entropy(table, own)}
    compare(f"labels {n_labels} own 75 threads {get_threads()}", runs, repeat=9)


def epoch(quick: bool) -> None:
    folder = data_folder("xmc/delicious")
    if folder is None:
        print("no xmc/delicious in PLACET_DATA or ../shared/data: the epoch is left out")
        return
    torch.set_num_threads(get_threads())
    train = placet.read_xmc(folder / "train.txt.xz")

    def fit(name: str) -> Callable[[], object]:
        return lambda: LabelRanker(name, learning_rate=1e-3, epochs=1).fit(train)

    names = ("pl-partition", "pl-lower-bound") + (() if quick else ("ranknet", "ranksvm"))
    compare(f"epoch of Delicious threads {get_threads()}", {name: fit(name) for name in names}, repeat=3)


PARTS = {"loss": loss, "scale": scale, "epoch": epoch}


if __name__ == "__main__":
    main(__doc__, PARTS, threads=2)
