"""Extreme sizes: one batch of 128 documents with 75 labels each of 100,000 sparse features, from 12,500 to 200,000 labels.

Beside `pl-partition` in the same run: binary cross-entropy over all labels, and, with 2,000 labels drawn, a plain sampled softmax and
`pl-partition` over the same labels.  Time of the loss with its gradient, of a whole step (forward, loss, backward, Adam), and peak memory, each size and
loss in a process of its own.  `--quick`: 2,000 and 8,000 labels, 2,000 features, one thread.
"""

import multiprocessing
import resource
import statistics

import numpy as np

from experiments.common import check, check_first, expected, least_cpu, need, output_folder, parser, times, write
from experiments.pl_partition.label_runs import off_network
from placet.threads import get_threads, set_threads

SIZES, QUICK_SIZES = (12_500, 50_000, 200_000), (2_000, 8_000)
FEATURES, QUICK_FEATURES = 100_000, 2_000
DOCUMENT, OWN, BATCH, HIDDEN, DRAWN = 100, 75, 128, 256, 2_000
LOSSES = ("pl-partition", "binary cross-entropy", "pl-partition, sampled", "softmax, sampled")


def batch(n_labels: int, n_features: int, seed: int):
    """Documents with 100 of all features and 75 labels each; labels by weight 1/sqrt(rank), so that some are frequent."""
    from scipy.sparse import csr_matrix

    from placet.rank.multilabel.documents import Documents

    rng = np.random.default_rng(seed)
    weight = -0.5 * np.log(1.0 + np.arange(n_labels))
    own = [np.sort(np.argpartition(-(weight + rng.gumbel(size=n_labels)), OWN)[:OWN]) for _ in range(BATCH)]
    column = np.concatenate([np.sort(rng.choice(n_features, DOCUMENT, replace=False)) for _ in range(BATCH)])
    X = csr_matrix(
        (rng.random(len(column), np.float32), column, DOCUMENT * np.arange(BATCH + 1)), shape=(BATCH, n_features)
    )
    Y = csr_matrix((np.ones(BATCH * OWN), np.concatenate(own), OWN * np.arange(BATCH + 1)), shape=(BATCH, n_labels))
    return Documents(X, Y)


def cross_entropy(table, own):
    """Binary cross-entropy summed over all labels of a document, mean over documents."""
    import torch

    target = torch.zeros_like(table)
    target[torch.from_numpy(own.document), torch.from_numpy(own.label)] = 1.0
    return torch.nn.functional.binary_cross_entropy_with_logits(table, target, reduction="sum") / len(table)


def sampled_softmax(network, documents, rng):
    """Cross-entropy of the own labels against the softmax over the labels of the batch and ``DRAWN`` others."""
    import torch

    from placet.rank.multilabel.label_losses import draw_others
    from placet.rank.torch import network as net

    here = np.unique(documents.Y.indices)
    n_labels = documents.Y.shape[1]
    drawn = draw_others(here, n_labels, DRAWN, rng)
    index = torch.from_numpy(np.concatenate([here, drawn]).astype(np.int64))
    *inner, (W, b) = network
    vectors = torch.nn.functional.embedding(index, W, sparse=True)
    hidden = net.hidden_outputs(inner, net.as_input(documents.X), sparse=True)
    log_p = torch.log_softmax(torch.nn.functional.linear(hidden, vectors, b[index]), dim=1)
    own = documents.own_labels()
    return -log_p[torch.from_numpy(own.document), torch.from_numpy(np.searchsorted(here, own.label))].sum() / len(log_p)


def identity(seed: int) -> dict[str, float]:
    """The loss by its formula; the sampled one, with all labels drawn, over the whole, and with half of the others, in the mean."""
    import torch

    from placet.rank.multilabel.label_losses import mean_loss, sampled_loss
    from placet.rank.torch import network as net
    from placet.rank.torch.neural import Criterion

    documents, rng = batch(600, 120, seed), np.random.default_rng(seed)
    documents = documents[np.arange(4)]
    criterion, sizes = Criterion("pl-partition", {"tol": 1e-9}, rng), (120, 8, 600)
    network = [tuple(map(torch.from_numpy, layer)) for layer in net.layers(net.first_weights(sizes, rng), sizes)]
    with torch.no_grad():
        table = net.forward(network, net.as_input(documents.X))
    table.requires_grad_()
    whole = mean_loss(criterion, table, documents.own_labels()).item()
    for layer in network:
        for part in layer:
            part.requires_grad_()
    every = sampled_loss(criterion, network, documents, 600, rng).item()
    half = np.mean([sampled_loss(criterion, network, documents, 150, rng).item() for _ in range(20)])
    return {
        "simulated, pl-partition, off its formula": off_network("pl-partition", "pl-partition", seed),
        "simulated, sampled with every label over the whole loss": every / whole,
        "simulated, sampled with 150 of the others over the whole loss": float(half / whole),
    }


def measure(loss: str, n_labels: int, n_features: int, repeat: int, seed: int) -> dict[str, float]:
    """Seconds of the loss, of a step, and the growth of peak memory over what Python and the batch need."""
    import torch

    from placet.rank.multilabel.label_losses import mean_loss, sampled_loss
    from placet.rank.torch import network as net
    from placet.rank.torch.neural import Criterion, _adams

    documents, rng = batch(n_labels, n_features, seed), np.random.default_rng(seed + 1)
    criterion, own, sampled = Criterion("pl-partition", None, rng), documents.own_labels(), loss.endswith("sampled")
    sizes = (n_features, HIDDEN, n_labels)
    warm = torch.zeros(2, 3, requires_grad=True)
    mean_loss(
        criterion, warm, own._replace(label=np.array([0, 1, 2]), grade=np.ones(3), offsets=np.array([0, 2, 3]))
    ).backward()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    weights = net.first_weights(sizes, rng)
    network = [tuple(torch.from_numpy(part).requires_grad_() for part in layer) for layer in net.layers(weights, sizes)]
    optimisers = _adams(network, [], 1e-3, 0.0, sampled)
    table_loss = mean_loss if loss.startswith("pl") else None

    def objective():
        if loss == "pl-partition, sampled":
            return sampled_loss(criterion, network, documents, DRAWN, rng)
        if loss == "softmax, sampled":
            return sampled_softmax(network, documents, rng)
        table = net.forward(network, net.as_input(documents.X))
        return mean_loss(criterion, table, own) if table_loss else cross_entropy(table, own)

    def step():
        objective().backward()
        for optimiser in optimisers:
            optimiser.step()
            optimiser.zero_grad()

    seconds = {"step": timed(step, repeat)}
    if not sampled:
        with torch.no_grad():
            table = net.forward(network, net.as_input(documents.X))
        table.requires_grad_()

        def alone():
            table.grad = None
            (mean_loss(criterion, table, own) if table_loss else cross_entropy(table, own)).backward()

        seconds["loss"] = timed(alone, repeat)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return seconds | {"peak_mb": peak / 1024}


def load(quick: bool) -> None:
    """Import here what every measurement needs, before the forks, and start no threads."""
    import torch

    from placet.rank.multilabel import label_ranker  # noqa: F401

    torch.optim.Adam([torch.zeros(1, requires_grad=True)])
    if quick:  # threads that wait for each other cost CPU time where many programs share the machine
        torch.set_num_threads(1)
        set_threads(1)


def timed(run, repeat: int) -> float:
    """Median seconds by the clock; of one thread, the least CPU time, which other work disturbs less."""
    if get_threads() == 1:
        return least_cpu(run, repeat)
    return statistics.median(spent.seconds for spent in times(run, repeat))


def claims(found: dict[tuple[int, str], dict[str, float]], small: int, large: int) -> dict[str, float]:
    """PL-Partition over binary cross-entropy at the largest size, and how its cost grows."""
    ours, other = found[large, "pl-partition"], found[large, "binary cross-entropy"]
    growth = ours["loss"] / found[small, "pl-partition"]["loss"] / (large / small)
    return {
        "simulated, loss, pl-partition over binary cross-entropy": ours["loss"] / other["loss"],
        "simulated, step, pl-partition over binary cross-entropy": ours["step"] / other["step"],
        "simulated, peak memory, pl-partition over binary cross-entropy": ours["peak_mb"] / other["peak_mb"],
        "simulated, growth of the loss over growth of the labels": growth,
        "simulated, step, sampled pl-partition over pl-partition": found[large, "pl-partition, sampled"]["step"] / ours["step"],
        "simulated, step, sampled pl-partition over sampled softmax": found[large, "pl-partition, sampled"]["step"]
        / found[large, "softmax, sampled"]["step"],
    }  # fmt: skip


def main() -> None:
    args = parser(__doc__).parse_args()
    need("torch")
    load(args.quick)
    sizes, features, repeat = (QUICK_SIZES, QUICK_FEATURES, 3) if args.quick else (SIZES, FEATURES, 5)
    path = expected(__file__, "quick" if args.quick else "")
    with multiprocessing.get_context("fork").Pool(1) as alone:
        named = alone.apply(identity, (args.seed,))
    check_first(named, path)
    found, rows = {}, []
    print("labels\tloss\tloss ms\tstep ms\tpeak MB")
    for n in sizes:
        for loss in LOSSES:
            with multiprocessing.get_context("fork").Pool(1) as alone:
                found[n, loss] = row = alone.apply(measure, (loss, n, features, repeat, args.seed))
            rows.append([n, loss, row.get("loss", np.nan), row["step"], row["peak_mb"]])
            print(f"{n}\t{loss}\t{1e3 * rows[-1][2]:.1f}\t{1e3 * row['step']:.1f}\t{row['peak_mb']:.0f}", flush=True)
    write(output_folder(path) / "table.csv", ["labels", "loss", "loss s", "step s", "peak MB"], rows)
    check(named | claims(found, sizes[-2], sizes[-1]), path)


if __name__ == "__main__":
    main()
