"""Table 1: the nine methods of the paper, pmop-exact and pl-partition, as linear rankers; ERR, NDCG@1 and NDCG@5.

MQ2008 and OHSUMED in five folds in place of Yahoo's data, which may not be shared: `--set FOLDER` runs those from
their set1.train.txt, split 80 : 10 : 10.  Features are standardised on the training part; "second" adds the products
whose correlation with the grade exceeds the paper's 0.15, "second 0.05" more of them.  L-BFGS stops at a relative
improvement of 1e-5 or after 100 iterations; the sampled losses take 1,000 plain steps of 0.1 on the mean gradient of
all queries, with one step of the chain per query and stage.  The paper has no penalty; here none and two others are
tried, in units of the loss's curvature so that losses of different size are treated alike, and NDCG@5 on the validation
part chooses.  Differences to PMOP-FD are paired by query, with 95 % bootstrap intervals.  "PMOP-MH" has the Hastings
correction, "as printed" has not.  `--resume` keeps the fits on record.

Losses, chains and fits are first held to their formulas, on simulated queries: no ranking of a few hundred queries tells
PMOP-FD from ListMLE.  `--quick`: one fold of simulated queries, whose truth has two products of features.

What came out (README.md has the tables): the paper's order is neither confirmed nor refuted.  PMOP-FD is ahead of the
six others in 54 of 72 means, clearly in 3 (all NDCG@5 on MQ2008, against the two models of tied pairs) and clearly
behind in none.  Second-order features at 0.15 help nobody clearly but the two PMOP-MH on OHSUMED, and harm some.
PMOP-FD is the fastest to fit, as the paper says.
"""

import csv
import warnings
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np

import placet
from experiments.common import (
    Timer,
    check,
    check_first,
    expected,
    letor_folds,
    letor_parts,
    output_folder,
    paired,
    parser,
    read_expected,
    set_names,
    skip,
    write,
)
from experiments.formulas import STEPS, off_chain, off_formula, slope_left
from placet.data import Queries
from placet.losses import LOSSES
from placet.metrics import evaluate, kendall_tau
from placet.optim import ConvergenceWarning
from placet.rank import LinearRanker
from placet.threads import set_threads

METHODS: dict[str, tuple[str, dict]] = {
    "Rank Regress": ("rank-regress", {}),
    "RankNet": ("ranknet", {}),
    "Ranking SVM": ("ranksvm", {}),
    "ListMLE": ("listmle", {}),
    "PairTies-D": ("davidson", {}),
    "PairTies-RK": ("rao-kupper", {}),
    "PMOP-FD": ("pmop-fd", {}),
    "PMOP-Gibbs": ("pmop-gibbs", {}),
    "PMOP-MH": ("pmop-mh", {}),
    "PMOP-MH as printed": ("pmop-mh", {"as_published": True}),
    "pmop-exact": ("pmop-exact", {}),
    "pl-partition": ("pl-partition", {}),
}
# the loss, its formula (or the step of its chain) in plain Python, and parameters: beside METHODS, so that a wrong line there is seen
FORMULAS: dict[str, tuple[str, str, dict]] = {
    "Rank Regress": ("rank-regress", "rank-regress", {}),
    "RankNet": ("ranknet", "ranknet", {}),
    "Ranking SVM": ("ranksvm", "ranksvm", {}),
    "ListMLE": ("listmle", "listmle", {}),
    "PairTies-D": ("davidson", "davidson", {}),
    "PairTies-RK": ("rao-kupper", "rao-kupper", {}),
    "PMOP-FD": ("pmop-fd", "pmop-fd", {}),
    "PMOP-Gibbs": ("pmop-gibbs", "gibbs", {}),
    "PMOP-MH": ("pmop-mh", "hastings", {}),
    "PMOP-MH as printed": ("pmop-mh", "as printed", {}),
    "pmop-exact": ("pmop-exact", "pmop-exact", {}),
    "pl-partition": ("pl-partition", "pl-partition", {}),
}
BASELINES = ("Rank Regress", "RankNet", "Ranking SVM", "ListMLE", "PairTies-D", "PairTies-RK")
PUBLISHED = (*BASELINES, "PMOP-FD", "PMOP-Gibbs", "PMOP-MH")
FEATURES = {"first": None, "second": 0.15, "second 0.05": 0.05}  # least absolute correlation of a product
PENALTIES = (0.0, 0.01, 1.0)  # in units of the curvature of the loss; 0 is the paper's
METRICS = ("err", "ndcg@1", "ndcg@5")
YAHOO, SIMULATED = "Yahoo", "simulated"
TOO_SLOW = {("second 0.05", m) for m in ("PMOP-Gibbs", "PMOP-MH", "PMOP-MH as printed", "pmop-exact")}

Fold = tuple[Queries, Queries, Queries]
Values = dict[str, np.ndarray]
Found = dict[tuple[str, str], dict[str, Values]]


def folds(where: str, seed: int) -> tuple[str, list[Fold]]:
    """Name, and (training, validation, test) queries: five folds, 80 : 10 : 10 of one file, or one simulated fold.

    ``where`` is the name of a LETOR set, a folder with S1 to S5, a LETOR file, a folder with set1.train.txt, or "simulated".
    The paper trains on 90 % of that file's queries and has no validation part; ours is a ninth of them.
    """
    if where == SIMULATED:
        whole = with_products(200, seed)
        return where, list(letor_folds([whole[40 * k : 40 * k + 40] for k in range(5)], 1))
    folder = Path(where)
    inside = [folder / f"set1.train.txt{end}" for end in ("", ".gz", ".xz", ".zst")]
    file = next((p for p in (folder, *inside) if p.is_file()), None)
    if file is None:
        return set_names([where])[0], list(letor_folds(letor_parts(where)))
    queries = placet.read_letor(file, sparse=False, dtype=np.float32)
    used = np.ptp(queries.X, axis=0) > 0  # 519 of the 699 columns in Yahoo's set 1
    queries = Queries(queries.X[:, used], queries.grade, queries.offsets)
    order, tenth = np.random.default_rng(seed).permutation(len(queries)), len(queries) // 10
    test, valid, train = (np.sort(part) for part in np.split(order, [tenth, 2 * tenth]))
    return YAHOO, [(queries[train], queries[valid], queries[test])]


def with_products(n: int, seed: int) -> Queries:
    """Queries of six to ten rows and six features; two products of features matter as much as the features."""
    rng = np.random.default_rng(seed)
    size = rng.integers(6, 11, n)
    X = rng.normal(size=(int(size.sum()), 6))
    latent = X @ np.tile([0.5, -0.5], 3) + X[:, 0] * X[:, 1] - X[:, 2] * X[:, 3] + 0.5 * rng.normal(size=len(X))
    grade = np.searchsorted(np.quantile(latent, [0.5, 0.8]), latent).astype(float)
    return Queries(X, grade, np.append(0, np.cumsum(size)))


def identity(args: Namespace) -> dict[str, float]:
    """Whether each method is the one of its name: its loss or chain by the formula, and the slope that its fit leaves."""
    found: dict[str, float] = {}
    train = folds(SIMULATED, args.seed)[1][0][0]
    for method, (loss, formula, params) in FORMULAS.items():
        name, given = METHODS[method]
        if formula in STEPS:
            found[f"{SIMULATED}, {method}, off its chain"] = off_chain(name, given, formula, seed=args.seed)
            continue
        found[f"{SIMULATED}, {method}, off its formula"] = off_formula(name, given, args.seed, formula)
        ranker = fitted(method, 0.0, train, "first", args)
        left = slope_left(loss, params | dict(ranker.learned_), ranker.predict(train), train.X, train)
        found[f"{SIMULATED}, {method}, slope left"] = left
    return found


def curvature(loss: str, train: Queries) -> float:
    """Trace of the Hessian per query where all scores are 0: the unit in which losses of any size are penalised."""
    exact = "pmop-exact" if LOSSES[loss].samples else loss
    return float(LOSSES[exact].curvature(np.zeros(len(train.grade)), train.lists()).sum()) / len(train)


def fitted(method: str, l2: float, train: Queries, kind: str, args: Namespace) -> LinearRanker:
    """L-BFGS to a relative improvement of 1e-5 or 100 iterations; 1,000 plain steps of 0.1 where the loss samples."""
    loss, params = METHODS[method]
    rule: dict = {"tol": 1e-6, "rel_tol": 1e-5, "max_iter": 100}
    if LOSSES[loss].samples:
        steps = 50 if args.quick else 1000
        rule = {"solver": "sgd", "step": "plain", "learning_rate": 0.1, "max_iter": steps, "random_state": args.seed}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # 100 iterations are the rule, not a failure
        return LinearRanker(loss, l2=l2, loss_params=params, second_order=FEATURES[kind], **rule).fit(train)


def chosen(method: str, fold: Fold, kind: str, args: Namespace) -> tuple[LinearRanker, float]:
    """The ranker whose penalty is best in NDCG@5 on the validation part, and the penalty in units of curvature."""
    train, valid, _ = fold
    unit = curvature(METHODS[method][0], train)
    tried = [(fitted(method, c * unit, train, kind, args), c) for c in PENALTIES[: 1 if args.quick else None]]
    return max(tried, key=lambda pair: pair[0].score(valid, metric="ndcg@5"))


def judged(method: str, fold: Fold, kind: str, top: float, args: Namespace) -> tuple[int, float, Values]:
    """Products of features, the penalty chosen, and the values of the test queries, NaN where nothing is relevant.

    V(r) = (2^r - 1) / 2^top in ERR, ``top`` the largest grade of the set.
    """
    ranker, penalty = chosen(method, fold, kind, args)
    test = fold[2]
    specs = (f"err(max_grade={top:g})", *METRICS[1:])
    values = dict(zip(METRICS, evaluate(specs, ranker.predict(test), test.grade, test.offsets).values()))
    return len(ranker.pairs_), penalty, values


def run(path: Path, sets: list[str], args: Namespace) -> None:
    """Every fit, its per-query values appended to the record at ``path`` as it is done."""
    done = {key[:4] for key in recorded(path)} if args.resume else set()
    if not done:
        write(path, ["set", "features", "method", "fold", "penalty", "cpu", *METRICS], [])
    for where in sets:
        name, parts = folds(where, args.seed)
        top = max(float(q.grade.max()) for fold in parts for q in fold)
        for number, fold in enumerate(parts):
            for kind in args.features:
                print(f"{name}, fold {number + 1}, {kind}", flush=True)
                for method in args.methods:
                    key = (name, kind, method, str(number))
                    if key in done or (kind, method) in TOO_SLOW:
                        continue
                    with Timer() as spent:
                        products, penalty, values = judged(method, fold, kind, top, args)
                    record(path, (*key, penalty, spent.cpu), values, products)


def record(path: Path, key: tuple, values: Values, products: int) -> None:
    """One row per query, in one write, so that a stop leaves whole fits."""
    lead = ",".join(f"{x:.6g}" if isinstance(x, float) else str(x) for x in key)
    rows = "".join(f"{lead},{','.join(f'{x:.9g}' for x in row)}\n" for row in zip(*values.values()))
    with open(path, "a") as file:
        file.write(rows)
    mean = "  ".join(f"{name} {np.nanmean(v):.4f}" for name, v in values.items())
    print(f"  {key[2]:20s} {products:3d} products, penalty {key[4]:<5g} {mean}  {key[5]:6.1f} s", flush=True)


def recorded(path: Path) -> dict[tuple, np.ndarray]:
    """(set, features, method, fold, penalty, cpu) -> (queries, metrics) of every fit on record."""
    rows: dict[tuple, list] = {}
    if path.exists():
        with open(path, newline="") as file:
            for row in list(csv.reader(file))[1:]:
                rows.setdefault(tuple(row[:6]), []).append([float(x) for x in row[6:]])
    return {key: np.array(values) for key, values in rows.items()}


def published() -> dict[str, float]:
    """The paper's table, from the expected file."""
    rows = read_expected(expected(__file__))
    return {row.quantity: float(row.paper) for row in rows if row.quantity.startswith(YAHOO) and row.paper}


def stacked(path: Path) -> Found:
    """(set, features) -> method -> metric -> values of the test queries of all folds, in the order of the folds."""
    parts: dict[tuple[str, str], dict[str, dict[int, np.ndarray]]] = {}
    for (name, kind, method, number, *_), values in recorded(path).items():
        parts.setdefault((name, kind), {}).setdefault(method, {})[int(number)] = values
    found: Found = {}
    for key, methods in parts.items():
        n_folds = max(len(done) for done in methods.values())
        late = [m for m, done in methods.items() if len(done) < n_folds]
        if late:
            print(f"{', '.join(key)}: left out, for want of folds (--resume does them): {', '.join(late)}")
        found[key] = {}
        for method in (m for m in METHODS if m in methods and m not in late):
            table = np.vstack([methods[method][f] for f in sorted(methods[method])])
            found[key][method] = dict(zip(METRICS, table.T))
    return found


def report(found: Found) -> tuple[dict[str, float], list[list[Any]]]:
    """Means, differences to PMOP-FD and what they say of the paper's claims; every number under its name."""
    ours: dict[str, float] = {}
    table: list[list[Any]] = []
    for (name, kind), methods in found.items():
        any_values = next(iter(methods.values()))["ndcg@5"]
        print(f"\n{name}, {kind}: {np.isfinite(any_values).sum()} of {len(any_values)} queries have something relevant")
        for method, values in methods.items():
            words = []
            for metric in METRICS:
                ours[f"{name}, {kind}, {method}, {metric}"] = mean = float(np.nanmean(values[metric]))
                gap, low, high, p = paired(values[metric], methods["PMOP-FD"][metric])
                table.append([name, kind, method, metric, mean, gap, low, high, p])
                words.append(f"{mean:.4f} {gap:+.3f} [{low:+.3f}, {high:+.3f}]")
            print(f"{method:20s} " + "   ".join(words))
        ordering(name, kind, table)
    ours |= gains(found)
    for name in dict.fromkeys(name for name, _ in found):
        ours |= verdict(name, table)
    return ours, table


def ordering(name: str, kind: str, table: list[list[Any]]) -> None:
    """Print the paper's first claim, that PMOP-FD is ahead of the six others, and the order of all nine, on one set."""
    paper = published()
    rows = {(r[2], r[3]): r for r in table if r[0] == name and r[1] == kind}
    order = "first" if kind == "first" else "second"
    for metric in METRICS:
        here = [m for m in PUBLISHED if (m, metric) in rows]
        others = [rows[m, metric] for m in here if m in BASELINES]
        ahead = [r for r in others if r[5] < 0]
        clear, against = [r[2] for r in others if r[7] < 0], [r[2] for r in others if r[6] > 0]
        mean = np.array([rows[m, metric][4] for m in here])
        theirs = np.array([paper[f"Yahoo, {order}, {m}, {metric}"] for m in here])
        tau = float(kendall_tau(mean, theirs, [0, len(here)])[0])
        verdict = "holds" if len(ahead) == len(others) else "does not hold"
        print(
            f"{metric}: 'PMOP-FD is ahead of the others' {verdict}: ahead of {len(ahead)} of {len(others)} in the "
            f"mean, clearly of {clear or 'none'}, clearly behind {against or 'none'}; best of the nine "
            f"{here[mean.argmax()]} (paper: {here[theirs.argmax()]}), Kendall's tau with the paper's order {tau:+.2f}"
        )


def verdict(name: str, table: list[list[Any]]) -> dict[str, float]:
    """The first claim on one set, over both orders of features and all metrics of the paper, counted."""
    gaps = [r for r in table if r[0] == name and r[2] in BASELINES and r[1] in ("first", "second")]
    counts = {
        "behind PMOP-FD": sum(r[5] < 0 for r in gaps),
        "clearly behind PMOP-FD": sum(r[7] < 0 for r in gaps),
        "clearly ahead of PMOP-FD": sum(r[6] > 0 for r in gaps),
    }
    print(f"\n{name}: of {len(gaps)} means of the others " + ", ".join(f"{n} {where}" for where, n in counts.items()))
    print(f"(if nothing differed, chance would make about {0.025 * len(gaps):.0f} clear in each direction)")
    return {f"{name}, means {where}": float(n) for where, n in counts.items()}


def spent(path: Path) -> None:
    """Processor time of the fits, all penalties and folds together."""
    seconds: dict[tuple[str, str], dict[str, float]] = {}
    for name, kind, method, _, _, cpu in recorded(path):
        here = seconds.setdefault((name, kind), {})
        here[method] = here.get(method, 0.0) + float(cpu)
    for (name, kind), here in seconds.items():
        print(
            f"{name}, {kind}, CPU s: " + ", ".join(f"{m} {s:.1f}" for m, s in sorted(here.items(), key=lambda x: x[1]))
        )


def gains(found: Found) -> dict[str, float]:
    """Print what second-order features add to each method; in the paper they help the six others and FD.

    On simulated queries, where two products matter, what they add to NDCG@5 is bounded.
    """
    ours: dict[str, float] = {}
    for (name, kind), methods in found.items():
        if kind == "first" or (name, "first") not in found:
            continue
        print(f"\n{name}, {kind} - first (NDCG@5, ERR)")
        for method in (m for m in methods if m in found[name, "first"]):
            first = found[name, "first"][method]
            words = [str(paired(methods[method][metric], first[metric])) for metric in ("ndcg@5", "err")]
            print(f"{method:20s} " + "   ".join(words))
            if name == SIMULATED:
                ours[f"{name}, {kind} - first, {method}, ndcg@5"] = paired(
                    methods[method]["ndcg@5"], first["ndcg@5"]
                ).mean
    return ours


def main() -> None:
    arguments = parser(__doc__, sets=("MQ2008", "OHSUMED"))
    arguments.add_argument("--resume", action="store_true", help="keep the fits on record and do the others")
    arguments.add_argument("--features", nargs="+", choices=FEATURES, default=list(FEATURES))
    arguments.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    args = arguments.parse_args()
    if "PMOP-FD" not in args.methods:
        arguments.error("PMOP-FD is what the others are compared with; add it to --methods")
    set_threads(1)
    path = expected(__file__, "quick" if args.quick else "")
    per_query = output_folder(path) / "per_query.csv"
    named = identity(args)
    check_first(named, path)
    run(per_query, [SIMULATED] if args.quick else args.set, args)
    found = stacked(per_query)
    ours, table = report(found)
    spent(per_query)
    header = ["set", "features", "method", "metric", "mean", "minus PMOP-FD", "low", "high", "p"]
    write(output_folder(path) / "table.csv", header, table)
    if set(args.methods) < set(METHODS) or set(args.features) < set(FEATURES):
        skip(
            "the check is of all methods and features; leave --methods and --features out, or --resume with the others"
        )
    check(named | ours, path, [SIMULATED, *(name for name, _ in found)])


if __name__ == "__main__":
    main()
