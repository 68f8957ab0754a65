"""Few human votes and many of a judge, in one fit: error of the scores, size and coverage of rank sets.

Full: Chatbot Arena judged by people and by GPT-4.  Truth is a fit to a half of the human votes; of the other half some
hundreds are used, with 6,000 votes of the judge; ties count as half a win, as in the published figures.  The judge is
also replaced by useless ones: answers at random, the reverse of its answers, and the answers about other models.  Then
LLMFAO with GPT-4: truth is a fit to the people's votes on half of the pairs of answers, and the order is compared.
Quick: simulated people with a good judge, one that deviates, and one that answers at random.
"""

import csv
import json
import lzma
from collections.abc import Iterator
from functools import partial

import numpy as np
from scipy.stats import spearmanr

import placet
from experiments.common import check, expected, need_data, parser
from experiments.kept_cells import Keep, KeptCells
from placet.data import Comparisons

SPLITS, JUDGED, PAIRS_SPLITS = 24, 6000, 200
OUTCOMES = {"model_a": "a", "model_b": "b"}


def arena(splits: int, seed: int, keep: Keep) -> Iterator[tuple[str, float]]:
    """Mean over splits, by number of human votes: rmse of both fits, rank sets and whether they cover."""
    human, judge = (_read(name) for name in ("arena-human.json", "arena-gpt4.json"))
    found = [keep(f"arena, split {seed + k}", partial(arena_split, human, judge, seed + k)) for k in range(splits)]
    yield from ((name, float(np.mean([one[name] for one in found]))) for name in found[0])


def arena_split(human: list[dict[str, str]], judge: list[dict[str, str]], seed: int) -> dict[str, float]:
    rng, found = np.random.default_rng(seed), {}
    order, judged = rng.permutation(len(human)), rng.permutation(len(judge))[:JUDGED]
    half = len(order) // 2
    truth = placet.consensus(_votes(human, order[:half]), "bradley-terry", ties="none")
    second = _votes(judge, judged)
    for count in (100, 200, 500, 1000):
        first = _votes(human, order[half : half + count])
        name = f"arena, {count} human votes"
        found |= {f"{name}, {key}": value for key, value in _compared(truth, first, second).items()}
        alone = _rmse(placet.consensus(first, "bradley-terry", ties="none"), truth)
        for kind, useless in _useless(second, rng.spawn(1)[0]).items():
            joined = placet.consensus(placet.Sources({"human": first, "judge": useless}, "human"), ties="none")
            found[f"{name}, {kind} judge, rmse over human only"] = _rmse(joined, truth) / alone
            said = any("adds nothing" in note or "if it agrees" in note for note in joined.notes)
            found[f"{name}, {kind} judge, its use said to be in doubt"] = float(said)
    return found


def _useless(judged: Comparisons, rng: np.random.Generator) -> dict[str, Comparisons]:
    """The same pairs judged at random, the other way round, and as if the models had each other's names."""
    i, j, total = judged.i, judged.j, judged.wins_i + judged.wins_j + judged.ties
    heads = rng.binomial(total.astype(int), 0.5).astype(float)
    other = rng.permutation(judged.n_items)
    outcomes = {"items": judged.items, "ties": judged.ties}
    return {
        "random": Comparisons(i, j, heads, total - heads, np.zeros(len(i)), items=judged.items),
        "reversed": Comparisons(i, j, judged.wins_j, judged.wins_i, **outcomes),
        "self-repeating": Comparisons(other[i], other[j], judged.wins_i, judged.wins_j, **outcomes),
    }


def llmfao(splits: int, seed: int, keep: Keep) -> Iterator[tuple[str, float]]:
    """Mean Spearman correlation with the held-out half, by number of pairs that people judged: joint, human, pooled.

    Splits share their votes, so the standard error says how well this mean is known, not how it would be elsewhere.
    """
    crowd, judge = (_crowd(name) for name in ("llmfao-crowd.csv", "llmfao-gpt4-comparisons.csv"))
    second = _sides(judge)
    found = [keep(f"llmfao, split {seed + k}", partial(llmfao_split, crowd, second, seed + k)) for k in range(splits)]
    for name in found[0]:
        values = [one[name] for one in found]
        yield name, float(np.mean(values))
        yield f"{name}, standard error", float(np.std(values, ddof=1) / np.sqrt(len(values)))


def llmfao_split(crowd: list[dict[str, str]], second: Comparisons, seed: int) -> dict[str, float]:
    ids, found = np.array(sorted({row["id"] for row in crowd})), {}
    order = np.random.default_rng(seed).permutation(len(ids))
    half = len(ids) // 2
    truth = placet.consensus(_sides(crowd, ids[order[:half]]), "bradley-terry", ties="none")
    for count in (50, 200, 400):
        first = _sides(crowd, ids[order[half : half + count]])
        ways = {
            "joint": placet.consensus(placet.Sources({"human": first, "judge": second}, "human"), ties="none"),
            "human only": placet.consensus(first, "bradley-terry", ties="none"),
            "pooled": placet.consensus(placet.concat([first, second]), "bradley-terry", ties="none"),
        }
        for way, board in ways.items():
            found[f"llmfao, {count} human pairs, {way} spearman"] = _spearman(board, truth)
    return found


def _crowd(name: str) -> list[dict[str, str]]:
    with lzma.open(need_data("votes") / f"{name}.xz", "rt") as file:
        return list(csv.DictReader(file))


def _sides(rows: list[dict[str, str]], ids: np.ndarray | None = None) -> Comparisons:
    names = sorted({row["left"] for row in rows} | {row["right"] for row in rows})
    kept = set(ids) if ids is not None else {row["id"] for row in rows}
    chosen = [row for row in rows if row["id"] in kept]
    outcome = [{"left": "a", "right": "b"}.get(row["winner"], "tie") for row in chosen]
    return Comparisons.from_battles(
        [row["left"] for row in chosen], [row["right"] for row in chosen], outcome, items=names
    )


def _spearman(found: placet.Consensus, truth: placet.Consensus) -> float:
    by_name = dict(zip(found.items, found.scores))
    return float(spearmanr([by_name[name] for name in truth.items], truth.scores).statistic)


def _compared(truth: placet.Consensus, first: Comparisons, second: Comparisons) -> dict[str, float]:
    joined = placet.consensus(placet.Sources({"human": first, "judge": second}, "human"), ties="none")
    alone = placet.consensus(first, "bradley-terry", ties="none")
    return {
        "joint rmse": _rmse(joined, truth),
        "human only rmse": _rmse(alone, truth),
        "joint size of rank sets": _size(joined),
        "human only size of rank sets": _size(alone),
        "ranks covered": _covered(joined, truth),
    }


def simulated(runs: int, seed: int) -> Iterator[tuple[str, float]]:
    """Ten items, 100 human votes, 2,000 of a judge: the ratio of the two errors, and how often rank sets cover."""
    for kind, scale, width in (("good", 1.3, 0.1), ("deviating", 1.3, 0.6), ("random", 0.0, 0.0)):
        error, cover = [], []
        for k in range(runs):
            theta = 0.8 * np.random.default_rng((seed, k)).standard_normal(10)
            drawn = placet.simulate.judged_votes(theta, 100, 2000, scale=scale, width=width, random_state=seed + k)
            truth = placet.Consensus(tuple(range(10)), theta - theta.mean(), method="truth")
            joined, alone = placet.consensus(drawn), placet.consensus(drawn["human"])
            error.append((_rmse(joined, truth), _rmse(alone, truth)))
            cover.append(_covered(joined, truth))
        joint, human = np.mean(error, axis=0)
        yield f"simulated, {kind} judge, error of the joint fit over human only", float(joint / human)
        yield f"simulated, {kind} judge, ranks covered", float(np.mean(cover))


def _read(name: str) -> list[dict[str, str]]:
    with lzma.open(need_data("votes") / f"{name}.xz", "rt") as file:
        return [json.loads(line) for line in file]


def _votes(rows: list[dict[str, str]], which: np.ndarray) -> Comparisons:
    chosen = [rows[k] for k in which]
    names = sorted({row["model_a"] for row in rows} | {row["model_b"] for row in rows})
    outcome = [OUTCOMES.get(row["winner"], "tie") for row in chosen]
    sides = [row["model_a"] for row in chosen], [row["model_b"] for row in chosen]
    return Comparisons.from_battles(*sides, outcome, items=names)


def _rmse(found: placet.Consensus, truth: placet.Consensus) -> float:
    by_name = dict(zip(found.items, found.scores))
    scores = np.array([by_name[name] for name in truth.items])
    return float(np.sqrt(np.mean((scores - scores.mean() - truth.scores + truth.scores.mean()) ** 2)))


def _size(found: placet.Consensus) -> float:
    low, high = found.rank_interval()
    return float(np.mean(high - low + 1))


def _covered(found: placet.Consensus, truth: placet.Consensus) -> float:
    low, high = found.rank_interval()
    rank = dict(zip(truth.items, truth.ranks))
    ranks = np.array([rank[name] for name in found.items])
    return float(((low <= ranks) & (ranks <= high)).all())


def main() -> None:
    arguments = parser(__doc__).parse_args()
    if arguments.quick:
        found = dict(simulated(20, arguments.seed))
    else:
        keep = KeptCells(__file__).of
        found = dict(arena(SPLITS, arguments.seed, keep)) | dict(llmfao(PAIRS_SPLITS, arguments.seed, keep))
    check(found, expected(__file__, "quick" if arguments.quick else ""))


if __name__ == "__main__":
    main()
