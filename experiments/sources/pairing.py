"""A judge and people who vote on the same answers: what it gains to know which votes are about the same answers.

An answer's luck moves the log odds of both by a normal amount of standard deviation 3 ("shared"), or by nothing
("none").  Ten items, 300 votes of people; the judge votes on the same answers only, or on those and 2,700 others.
Full: also Chatbot Arena, where GPT-4 judged the answers that people judged; truth is a fit to a half of the people's votes.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np

import placet
from experiments.common import check, expected, parser
from experiments.kept_cells import Keep, KeptCells, anew
from experiments.sources.judges import _read, _rmse
from placet.data import Comparisons

RUNS, QUICK_RUNS, SPLITS = 200, 12, 16
ITEMS, VOTED, SHARED = 10, 300, 3.0
STEEPER = 0.346
"""Squared ratio of the logistic curve to the closest normal one: luck of variance s^2 flattens odds by sqrt(1 + this s^2)."""


def drawn(judged: int, luck: float, rng: np.random.Generator) -> tuple[np.ndarray, Comparisons, Comparisons]:
    """True scores, votes of people and of the judge; the id of the answers is the agent."""
    theta = 0.7 * rng.standard_normal(ITEMS)
    i = rng.integers(0, ITEMS, judged)
    j = (i + rng.integers(1, ITEMS, judged)) % ITEMS
    quality, steep = luck * rng.standard_normal(judged), np.sqrt(1 + STEEPER * luck**2)

    def votes(scores: np.ndarray, count: int) -> Comparisons:
        won = rng.random(judged) < 1 / (1 + np.exp(-(steep * (scores[i] - scores[j]) + quality)))
        ids, sides = list(range(count)), (i[:count].tolist(), j[:count].tolist())
        return Comparisons.from_battles(*sides, np.where(won, "a", "b")[:count].tolist(), agent=ids, items=range(ITEMS))

    people, judge = votes(theta, VOTED), votes(1.2 * (theta + 0.3 * rng.standard_normal(ITEMS)), judged)
    return theta - theta.mean(), people, judge


def simulated(runs: int, seed: int, keep: Keep) -> Iterator[tuple[str, float]]:
    """Error of the paired fit over that of the unpaired one, and how often 95% intervals of scores cover, in both."""
    for judged in (VOTED, 10 * VOTED):
        for name, luck in (("no", 0.0), ("shared", SHARED)):
            about = f"simulated, {judged} judged, {name} luck"
            one = partial(both_ways, judged, luck)
            found = np.array([keep(f"{about}, {seed}, run {k}", partial(one, (seed, judged, k))) for k in range(runs)])
            (plain, cover), (joined, paired_cover) = found.mean(axis=0)
            yield f"{about}, error of the paired fit over the unpaired", float(np.sqrt(joined / plain))
            yield f"{about}, intervals that cover, unpaired", float(cover)
            yield f"{about}, intervals that cover, paired", float(paired_cover)
            yield f"{about}, intervals that cover, paired less unpaired", float(paired_cover - cover)


def both_ways(judged: int, luck: float, seed: tuple[int, ...]) -> list[tuple[float, float]]:
    """Squared error and share of intervals that cover, unpaired and paired."""
    found = []
    theta, people, judge = drawn(judged, luck, np.random.default_rng(seed))
    for paired in (False, True):
        board = placet.consensus(placet.Sources({"people": people, "judge": judge}, "people", paired))
        error = board.scores - theta
        found.append((float(np.mean(error**2)), float(np.mean(np.abs(error) < 1.96 * board.stderr))))
    return found


def arena(splits: int, seed: int, keep: Keep) -> Iterator[tuple[str, float]]:
    """1,000 human votes, and GPT-4 on the same answers and 5,000 others: errors of scores, and the stated errors."""
    human, judge = _read("arena-human.json"), _read("arena-gpt4.json")
    found = [keep(f"arena, split {seed + k}", partial(arena_split, human, judge, seed + k)) for k in range(splits)]
    yield from ((name, float(np.mean([one[name] for one in found]))) for name in found[0])


def arena_split(human: list[dict[str, str]], judge: list[dict[str, str]], seed: int) -> dict[str, float]:
    order, found = np.random.default_rng(seed).permutation(len(human)), {}
    half = len(order) // 2
    truth = placet.consensus(_with_ids(human, order[:half]).pooled(), "bradley-terry", ties="none")
    chosen = order[half : half + 1000]
    first, second = _with_ids(human, chosen), _with_ids(judge, order[half : half + 6000])
    for paired, way in ((False, "unpaired"), (True, "paired")):
        board = placet.consensus(placet.Sources({"human": first, "judge": second}, "human", paired), ties="none")
        found[f"arena, 1000 human votes, {way} rmse"] = _rmse(board, truth)
        found[f"arena, 1000 human votes, {way} stated error"] = float(board.stderr.mean())
    return found


def _with_ids(rows: list[dict[str, str]], which: np.ndarray) -> Comparisons:
    chosen = [rows[k] for k in which]
    names = sorted({row["model_a"] for row in rows} | {row["model_b"] for row in rows})
    outcome = [{"model_a": "a", "model_b": "b"}.get(row["winner"], "tie") for row in chosen]
    sides = [row["model_a"] for row in chosen], [row["model_b"] for row in chosen]
    return Comparisons.from_battles(*sides, outcome, agent=[row["question_id"] for row in chosen], items=names)


def main() -> None:
    arguments = parser(__doc__).parse_args()
    if arguments.quick:
        found = dict(simulated(QUICK_RUNS, arguments.seed, anew))
    else:
        keep = KeptCells(__file__).of
        found = dict(simulated(RUNS, arguments.seed, keep)) | dict(arena(SPLITS, arguments.seed, keep))
    check(found, expected(__file__, "quick" if arguments.quick else ""))


if __name__ == "__main__":
    main()
