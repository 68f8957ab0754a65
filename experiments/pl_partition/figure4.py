"""Figure 4: PL-Partition is not sensitive to the number of quadrature nodes T, nor to the centring c of the scores.

The kernel chooses its nodes by a tolerance, so T is measured: the mean over the tiers of a trained network's scores.  The paper needs
c to bring its equal intervals of (0, 1) to where the integrand is; here the integral depends on differences of scores alone, so adding
c to all of them may change a value and its gradient by rounding only.
"""

import numpy as np

from experiments.common import check, check_first, expected, need, output_folder, parser, set_names, write
from experiments.pl_partition.label_runs import BATCHES, SETS, SIMULATED, off_network, read

TOLERANCES = (0.1, 1e-2, 1e-4, 1e-8, 1e-11, 1e-14)
SHIFTS = (-10.0, -5.0, 0.0, 5.0, 10.0)


def main() -> None:
    args = parser(__doc__, sets=tuple(SETS)).parse_args()
    need("torch")
    from placet.rank import LabelRanker

    path = expected(__file__, "quick" if args.quick else "")
    sets = [SIMULATED] if args.quick else args.set
    more = {"learning_rate": 1e-2, "epochs": 5} if args.quick else {"learning_rate": 1e-3, "epochs": 100}
    ours = {f"{SIMULATED}, off its formula": off_network("pl-partition", "pl-partition", args.seed)}
    check_first(ours, path)
    for name, where in zip(set_names(sets), sets):
        train, test = read(where, args.seed)
        rows = []
        for tol in TOLERANCES[::5] if args.quick else TOLERANCES:
            ranker = LabelRanker(loss_params={"tol": tol}, random_state=args.seed, **BATCHES, **more).fit(train)
            value = 100 * ranker.score(test, metric="p@5(empty=0)")
            rows.append([tol, nodes(ranker, test, tol), value])
            print(f"tol {tol:g}: {rows[-1][1]:.1f} nodes, P@5 {value:.2f}", flush=True)
        ours |= {
            f"{name}, P@5 with the most nodes": rows[-1][2],
            f"{name}, range of P@5 over T": float(np.ptp([row[2] for row in rows])),
            f"{name}, least nodes": rows[0][1],
            f"{name}, most nodes": rows[-1][1],
            f"{name}, change under a shift": centring(ranker, test),
        }
        write(output_folder(path) / f"{name}.csv", ["tol", "nodes", "P@5"], rows)
        draw(rows, output_folder(path) / f"{name}.png")
    check(ours, path, [SIMULATED, *set_names(sets)])


def scores(ranker, documents) -> tuple:
    """Scores (documents, labels) and own labels of the first 256 documents."""
    from placet.rank.multilabel.documents import as_documents
    from placet.rank.torch import network as net

    first = as_documents(documents.X[:256], documents.Y[:256])
    first = first[np.flatnonzero(first.useful())]
    return net.network_scores(net.layers(ranker.weights_, ranker.sizes_.tolist()), first.X), first.own_labels()


def nodes(ranker, documents, tol: float) -> float:
    """Mean number of nodes of the integrals of these documents."""
    from placet.kernels.losses import quadrature

    s, own = scores(ranker, documents)
    node, exponent, counts = np.empty((3, quadrature.MAX_NODES)), np.empty(quadrature.MAX_NODES, np.int64), []
    for d in range(len(s)):
        label = own.label[own.offsets[d] : own.offsets[d + 1]]
        rest = np.delete(s[d].astype(float), label)
        gaps = s[d, label] - (rest.max() + np.log(np.exp(rest - rest.max()).sum()))
        item = np.empty((4, len(label)))
        if len(label) > 1:
            counts.append(quadrature.log_probability(gaps, len(label), tol, *item, *node, exponent)[1])
    return float(np.mean(counts))


def centring(ranker, documents) -> float:
    """Largest relative change of the loss and of its gradient when c, from -10 to 10, is added to all scores."""
    from placet.data import Lists
    from placet.losses import LOSSES

    s, own = scores(ranker, documents)
    grade = np.zeros(s.shape)
    grade[own.document, own.label] = own.grade
    lists = Lists(grade.ravel(), s.shape[1] * np.arange(len(s) + 1))
    value, grad = LOSSES["pl-partition"](s.astype(float).ravel(), lists, tol=1e-4)
    moved = 0.0
    for c in SHIFTS:
        other, slope = LOSSES["pl-partition"](s.astype(float).ravel() + c, lists, tol=1e-4)
        moved = max(moved, abs(other / value - 1), np.abs(slope - grad).max() / np.abs(grad).max())
    return moved


def draw(rows: list, path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 3.5), layout="constrained")
    axes = figure.subplots()
    axes.plot([row[1] for row in rows], [row[2] for row in rows], marker="o")
    axes.set(xlabel="quadrature nodes T", ylabel=f"P@5 on {path.stem}", xscale="log")
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
