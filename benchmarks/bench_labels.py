"""Speed of label ranking: python -m benchmarks.bench_labels [part ...] [--threads 2] [--quick]

loss    983 labels, 19 relevant, 128 documents: the loss with its gradient against the forward and backward pass of the network
scale   200,000 labels, 75 relevant: `pl-partition` against binary cross-entropy, both with gradients
epoch   one epoch of Delicious (target: 10 s on 2 cores), from PLACET_DATA or ../shared/data
peers   `LabelRanker()` against napkinXC's PLT and omikuji, all with default settings, on simulated tagged documents, with
        and without words that only one label has: CPU time (target: five times theirs), and P@1, P@5, PSP@5 on documents
        held out
"""

import tempfile
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from scipy.sparse import csr_matrix

import placet
from benchmarks.harness import compare, main
from experiments.common import data_folder
from placet.io import MultiLabel, write_xmc
from placet.metrics import metric, propensities
from placet.rank import LabelRanker
from placet.rank.multilabel.best_labels import Top, means_over_documents
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


# --- peers ------------------------------------------------------------------------------------------------------------

SHAPES = (
    (7_400, 1_836, 159, 69, 0),
    (6_000, 1_000, 50, 50, 0),
    (9_000, 5_000, 1_000, 100, 0),
    (6_000, 3_000, 159, 60, 5),
    (7_500, 8_000, 1_000, 60, 5),
)
"""Documents, words, labels, words drawn for a document, and words that only one label has; the first are those of Bibtex."""
METRICS = ("p@1", "p@5", "psp@5")


def tagged(n: int, n_words: int, n_labels: int, length: int, only: int, seed: int) -> MultiLabel:
    """Documents of words that are there or not: nearly half come from the 40 words of a label of theirs.

    With ``only``, a tenth come from as many words that no other label and no other document has, and the rest from the
    other words.  Some labels are frequent; half of the labels after the first are of its topic.  A label is left out in
    15 % of cases, and one in seven documents has a label by mistake.
    """
    rng = np.random.default_rng(seed)
    n_common, share = n_words - only * n_labels, 0.1 if only else 0.45
    common = rng.permutation(1.0 / np.arange(3, n_common + 3) ** 0.9)
    frequent = 1.0 / np.arange(2, n_labels + 2) ** 0.7
    common, frequent = common / common.sum(), frequent / frequent.sum()
    if only:
        words_of = n_common + rng.permutation(only * n_labels).reshape(n_labels, only)
    else:
        words_of = rng.choice(n_words, (n_labels, 40), p=0.5 * common + 0.5 / n_words)
    topics = max(4, n_labels // 8)
    own, document, mistaken = [], [], []
    for _ in range(n):
        first = int(rng.choice(n_labels, p=frequent))
        more = rng.choice(n_labels, rng.poisson(1.4), p=frequent)
        related = np.arange(first % topics, n_labels, topics)
        more = np.where(rng.random(len(more)) < 0.5, rng.choice(related, len(more)), more)
        labels = np.unique([first, *more])
        size = max(5, rng.poisson(length))
        of = rng.choice(labels, rng.binomial(size, share))
        theirs = words_of[of, (words_of.shape[1] * rng.random(len(of)) ** 3).astype(int)]
        document.append(np.unique([*theirs, *rng.choice(n_common, size - len(of), p=common)]))
        own.append(labels[rng.random(len(labels)) >= 0.15])
        mistaken.append(rng.choice(n_labels, int(rng.random() < 0.15), p=frequent))
    X = rows_of(document, n_words)
    return MultiLabel(X, rows_of([np.union1d(a, b).astype(int) for a, b in zip(own, mistaken)], n_labels))


def rows_of(columns: Sequence[np.ndarray], n_columns: int) -> csr_matrix:
    """Rows with ones in these columns."""
    start = np.cumsum([0, *map(len, columns)])
    return csr_matrix((np.ones(start[-1]), np.concatenate(columns), start), shape=(len(columns), n_columns))


Proposals = Callable[[csr_matrix], np.ndarray]
"""The five best labels of every document."""


def by_placet(train: MultiLabel, folder: Path) -> Proposals:
    ranker = LabelRanker().fit(train)
    return lambda X: ranker.predict(X, k=5)


def by_napkinxc(train: MultiLabel, folder: Path) -> Proposals:
    from napkinxc.models import PLT

    model = PLT(str(folder / "plt"), threads=get_threads(), seed=1)
    model.fit(train.X, [row.indices.tolist() for row in train.Y])
    return lambda X: np.array(model.predict(X, top_k=5))


def by_omikuji(train: MultiLabel, folder: Path) -> Proposals:
    import omikuji

    write_xmc(train, folder / "train.txt")
    model = omikuji.Model.train_on_data(str(folder / "train.txt"), n_threads=get_threads())
    pairs = lambda row: list(zip(row.indices.tolist(), row.data.tolist()))  # noqa: E731
    return lambda X: np.array([[label for label, _ in model.predict(pairs(row), top_k=5)] for row in X])


PEERS = {"placet": by_placet, "napkinxc": by_napkinxc, "omikuji": by_omikuji}


def quality(best: np.ndarray, test: MultiLabel, train: MultiLabel) -> str:
    """Means in percent of the five best labels of every document."""
    top = Top(best, np.tile(np.arange(5.0, 0.0, -1.0, np.float32), (len(best), 1)), test.Y.shape[1])
    propensity = propensities(np.bincount(train.Y.indices, minlength=test.Y.shape[1]), train.X.shape[0])
    found = means_over_documents([metric(name) for name in METRICS], top.judge(test.Y), propensity)
    return ", ".join(f"{name} {100 * value:.1f}" for name, value in zip(METRICS, found))


def peers(quick: bool) -> None:
    torch.set_num_threads(get_threads())
    absent = [name for name in PEERS if find_spec(name) is None]
    if absent:
        print(f"left out, not installed: {', '.join(absent)}")
    fits = {name: fit for name, fit in PEERS.items() if name not in absent}
    for seed, (n, *shape) in enumerate(SHAPES[1:2] if quick else SHAPES):
        data = tagged(n // 4 if quick else n, *shape, seed)
        border = 2 * data.X.shape[0] // 3
        train, test = MultiLabel(data.X[:border], data.Y[:border]), MultiLabel(data.X[border:], data.Y[border:])
        only = f", {shape[3]} of one label only" if shape[3] else ""
        name = f"tags, {border} documents, {shape[0]} words{only}, {shape[1]} labels, threads {get_threads()}"
        with tempfile.TemporaryDirectory() as folder:
            runs = {who: lambda fit=fit, train=train: fit(train, Path(folder)) for who, fit in fits.items()}
            notes = {who: quality(run()(test.X), test, train) for who, run in runs.items()}
            compare(name, runs, repeat=3, notes=notes)


PARTS = {"loss": loss, "scale": scale, "epoch": epoch, "peers": peers}


if __name__ == "__main__":
    main(__doc__, PARTS, threads=2)
