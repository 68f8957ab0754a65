"""Defaults by simulation: errors and probabilities of votes with ties, ratings of users, and stated pairs.

    python -m experiments.uncertainty.defaults [--quick] [--seed N]      # from the project's root

Votes of which many tie: the standard errors over the spread of the errors, and how far off the probability of winning
is.  Ratings of the shape of MovieLens, the popular better: pairs of held-out ratings that are ordered rightly, less those
by the plain mean and by user and item bias, and standard errors over those of a bootstrap of users.  Voters who state
the pairs (a, b), (b, c), (c, d): how often the best item comes first, and the error of its lead.  Long lists of stars
by Plackett-Luce, if it is asked for: the errors of the scores in units of their standard errors.
"""

import numpy as np

import placet
from experiments.common import check, expected, parser
from placet.io import read_preferences
from placet.losses.pairwise import outcome_probabilities

THETA = np.array([1.2, 0.8, 0.4, 0.0, -0.4, -0.8, -1.2])
TIE = 0.7


def tied_votes(runs: int, seed: int) -> dict[str, float]:
    """Standard errors over the errors, and the mean error of the probabilities of winning."""
    i, j = np.triu_indices(len(THETA), 1)
    truth = outcome_probabilities(THETA[i] - THETA[j], "davidson", TIE)[0]
    errors, claimed, off = [], [], []
    for run in range(runs):
        votes = placet.simulate.battles(THETA, 2000, tie=TIE, random_state=seed + run)
        found = placet.consensus(votes)
        errors.append(found.scores - THETA)
        claimed.append(found.stderr)
        off.append(np.abs(found.win_between(i, j) - truth).mean())
    ratio = np.sqrt(np.mean(np.square(claimed)) / np.mean(np.square(errors)))
    return {
        "simulated, votes with ties, standard errors over errors": float(ratio),
        "simulated, votes with ties, error of P": float(np.mean(off)),
    }


def film_ratings(seed: int, users: int, films: int, rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Users, films and stars: few films are seen by most, and these are better."""
    rng = np.random.default_rng(seed)
    weight = (1.0 + np.arange(films)) ** -0.9
    key = np.unique(
        rng.choice(users, 2 * rows, p=rng.dirichlet(np.full(users, 1.5))) * films
        + rng.choice(films, 2 * rows, p=weight / weight.sum())
    )
    key = np.sort(rng.permutation(key)[:rows])
    user, film = key // films, key % films
    quality = 0.45 * rng.normal(size=films) + 0.15 * np.log(weight / weight.mean())
    level = 3.6 + quality[film] + 0.45 * rng.normal(size=users)[user]
    return user, film, np.clip(np.rint(level + 0.9 * rng.normal(size=len(user))), 1, 5)


def ordered_rightly(score: np.ndarray, user: np.ndarray, film: np.ndarray, stars: np.ndarray) -> float:
    """The share of pairs of one user with different stars that the scores order as the stars do."""
    right = total = 0.0
    for rows in np.split(np.arange(len(user)), np.flatnonzero(np.diff(user)) + 1):
        sign = np.sign(stars[rows][:, None] - stars[rows])
        total += (sign != 0).sum()
        right += ((1 + sign * np.sign(score[film[rows]][:, None] - score[film[rows]])) / 2)[sign != 0].sum()
    return right / total


def user_and_item_bias(user: np.ndarray, film: np.ndarray, stars: np.ndarray, films: int) -> np.ndarray:
    """Item biases by turns of least squares with a light penalty."""
    item, level = np.zeros(films), np.zeros(user.max() + 1)
    for _ in range(15):
        level = np.bincount(user, stars - item[film]) / np.maximum(np.bincount(user), 1)
        item = np.bincount(film, stars - level[user], films) / (1 + np.bincount(film, minlength=films))
    return item


def ratings(seed: int, users: int, films: int, rows: int) -> dict[str, float]:
    user, film, stars = film_ratings(seed, users, films, rows)
    held = np.random.default_rng(seed).random(len(user)) < 0.2
    data = placet.Rankings.from_scores(
        {"user": user[~held], "film": film[~held], "stars": stars[~held]}, ballot="user", item="film", score="stars"
    )
    found, drawn = placet.consensus(data), placet.consensus(data, bootstrap=40)
    score = np.full(films, found.scores.min())
    score[np.array(found.items)] = found.scores
    bias = user_and_item_bias(user[~held], film[~held], stars[~held], films)
    test = user[held], film[held], stars[held]
    often = found.support >= 20
    return {
        "simulated, ratings, held-out pairs less user and item bias": ordered_rightly(score, *test)
        - ordered_rightly(bias, *test),
        "simulated, ratings, standard errors over bootstrap by user": float(
            np.median((found.stderr / drawn.stderr)[often])
        ),
    }


def stated_pairs(runs: int, seed: int) -> dict[str, float]:
    """How often the best item comes first, and the mean lead over its truth of 0.3."""
    first, lead = [], []
    for run in range(runs):
        rng = np.random.default_rng(seed + run)
        theta = np.array([0.0, 0.6, 0.3, 0.0])
        pairs = np.array([(0, 1), (1, 2), (2, 3)])
        up = rng.random((1000, 3)) < 1 / (1 + np.exp(theta[pairs[:, 1]] - theta[pairs[:, 0]]))
        better, worse = np.where(up, pairs[:, 0], pairs[:, 1]), np.where(up, pairs[:, 1], pairs[:, 0])
        voter = np.repeat(np.arange(1000), 3)
        data = read_preferences(
            {"list": voter.tolist(), "over": better.ravel().tolist(), "under": worse.ravel().tolist()}
        )
        found = placet.consensus(data)
        order = [str(name) for name in found.ranking]
        first.append(order[0] == "1")
        names = [str(name) for name in found.items]
        lead.append(found.scores[names.index("1")] - found.scores[names.index("2")])
    return {
        "simulated, stated pairs, the best comes first": float(np.mean(first)),
        "simulated, stated pairs, its lead": float(np.mean(lead)),
    }


def long_lists(seed: int, users: int = 110, films: int = 600) -> dict[str, float]:
    """The root mean square of the errors of scores over their standard errors, where every user rates every film."""
    rng = np.random.default_rng(seed)
    theta = 0.5 * rng.normal(size=films)
    order = np.argsort(-(theta + rng.gumbel(size=(users, films))), axis=1)
    tier = np.empty((users, films))
    np.put_along_axis(tier, order, np.broadcast_to(np.arange(films) * 5.0 // films, order.shape), axis=1)
    found = placet.consensus(placet.Rankings.from_ranks(tier), "plackett-luce")
    error = (found.scores - theta + theta.mean()) / found.stderr
    return {"simulated, long lists of stars, errors over standard errors": float(np.sqrt(np.mean(error**2)))}


def main() -> None:
    arguments = parser(__doc__).parse_args()
    runs = 15 if arguments.quick else 200
    size = (150, 120, 6_000) if arguments.quick else (943, 1682, 100_000)
    ours = (
        tied_votes(runs, arguments.seed)
        | ratings(arguments.seed, *size)
        | stated_pairs(max(runs // 3, 5), arguments.seed)
        | long_lists(arguments.seed)
    )
    print(", ".join(f"{name} {value:.4f}" for name, value in ours.items()), flush=True)
    check(ours, expected(__file__, "quick" if arguments.quick else ""))


if __name__ == "__main__":
    main()
