"""Write docs/files: the files used by the how-to pages.  All are simulated from known parameters, with fixed seeds."""

import sys
from pathlib import Path

import numpy as np

import placet
from placet.io.tables.tables import write_table

FOLDER = Path(__file__).parents[1] / "docs" / "files"

TEXTS = {
    "animals.csv": """item,order,legs,link
ant,Hymenoptera,6,https://example.org/ant
bee,Hymenoptera,6,https://example.org/bee
cat,Carnivora,4,https://example.org/cat
dog,Carnivora,4,https://example.org/dog
eel,Anguilliformes,0,https://example.org/eel
""",
    "abc.ballots": "3: A > B > C\n2: B > C > A\n",
    "drinks.ballots": "5: tea > coffee = cocoa\n4: coffee > tea\n2: tea > cocoa > coffee\n1: cocoa > coffee\n",
    "club.ballots": "8: Ann > Bob > Cid\n5: Bob > Cid > Ann\n7: Cid > Bob > Ann\n",
    "cup.csv": (
        "date,home_team,away_team,home_score,away_score,neutral\n"
        "2025-03-01,ant,bee,3,0,false\n"
        "2025-03-08,bee,cat,1,1,false\n"
        "2025-03-15,cat,ant,0,2,false\n"
        "2025-04-05,ant,cat,2,1,false\n"
        "2025-04-12,bee,ant,1,1,false\n"
        "2025-04-19,cat,bee,2,0,true\n"
    ),
    "clicks.csv": "session,query,document,position,clicked\n1,tea,a,1,0\n1,tea,b,2,1\n1,tea,c,3,0\n2,tea,b,1,1\n2,tea,a,2,0\n2,tea,c,3,0\n",
    "engines.run": "".join(
        f"{query} Q0 {document} {k + 1} {4 - k} {engine}\n"
        for query, engine, documents in [
            ("cats", "one", "abcd"), ("cats", "two", "bad"), ("cats", "noise", "dc"),
            ("dogs", "one", "xyz"), ("dogs", "two", "xzy"), ("dogs", "noise", "zy"),
        ]
        for k, document in enumerate(documents)
    ),
    "qrels.txt": "cats 0 a 1\ncats 0 b 2\ncats 0 d 0\ndogs 0 x 1\ndogs 0 z 0\n",
}  # fmt: skip


def votes() -> dict[str, list]:
    """400 votes on five items; the true order is ant, bee, cat, dog, eel."""
    rng = np.random.default_rng(7)
    skill = {"ant": 1.2, "bee": 0.6, "cat": 0.5, "dog": -0.4, "eel": -1.9}
    rows = []
    for _ in range(400):
        first, second = rng.choice(list(skill), 2, replace=False).tolist()
        u, d = rng.random(), skill[first] - skill[second]
        a_wins, b_wins = 1 / (1 + np.exp(0.4 - d)), 1 / (1 + np.exp(0.4 + d))
        rows.append((first, second, "a" if u < a_wins else "b" if u < a_wins + b_wins else "tie"))
    return columns(["a", "b", "winner"], rows)


def languages() -> dict[str, list]:
    """Votes in two languages, counted; bee is much better in French than in English."""
    rows = []
    for language, truth, seed in (("en", [1.0, 0.4, 0.0, -0.8], 1), ("fr", [0.8, 1.4, 0.0, -0.8], 2)):
        drawn = placet.simulate.battles(truth, 1500, items=["ant", "bee", "cat", "dog"], random_state=seed)
        for i, j, *counts in zip(drawn.i, drawn.j, drawn.wins_i, drawn.wins_j, drawn.ties):
            for winner, count in zip(("a", "b", "tie"), counts):
                if count:
                    rows.append((drawn.items[i], drawn.items[j], winner, int(count), language))
    return columns(["a", "b", "winner", "count", "language"], rows)


def judged() -> dict[str, list]:
    """Votes on eight items, counted: 150 of people, 1,200 of a judge who nearly agrees with them."""
    skill = [1.0, 0.7, 0.4, 0.1, -0.2, -0.5, -0.7, -0.8]
    drawn = placet.simulate.judged_votes(skill, 150, 1200, width=0.1, items=list("abcdefgh"), random_state=4)
    rows = []
    for name, own in zip(("human", "llm"), drawn.values()):
        for i, j, *counts in zip(own.i, own.j, own.wins_i, own.wins_j):
            rows += [(own.items[i], own.items[j], side, int(n), name) for side, n in zip(("a", "b"), counts) if n]
    return columns(["model_a", "model_b", "winner", "count", "judge"], rows)


def benchmarks() -> dict[str, list]:
    """Shares of tasks solved by 40 models on 12 benchmarks, of which two in five are known."""
    rng = np.random.default_rng(3)
    ability, difficulty = rng.normal(0.0, 1.2, 40), rng.normal(0.0, 1.0, 12)
    slope = np.exp(rng.normal(0.0, 0.3, 12))
    names = [f"model {k}" for k in range(40)]
    drawn = placet.simulate.benchmark_table(
        ability, difficulty, slope=slope, dispersion=0.02, observed=0.4, items=names, random_state=3
    )
    i, t = np.nonzero(~np.isnan(drawn.value))
    rows = [(names[a], drawn.tasks[b], round(float(drawn.value[a, b]), 3)) for a, b in zip(i, t)]
    return columns(["model", "task", "score"], rows)


def ratings() -> dict[str, list]:
    """300 users and 200 films, and one more film that only one user rated, with five stars."""
    drawn = placet.simulate.ratings(300, 200, observed=0.1, popularity=1.2, random_state=1)
    rows = [(f"user {u}", f"film {k}", int(s)) for u, k, s in zip(drawn.agent[drawn.ballot], drawn.item, drawn.score)]
    return columns(["user", "film", "stars"], [*rows, ("user 0", "new film", 5)])


def columns(names: list[str], rows: list[tuple]) -> dict[str, list]:
    return dict(zip(names, map(list, zip(*rows))))


def write_letor(path: Path, data: placet.Queries) -> None:
    """Write queries with features to four decimals."""
    lines = []
    for k, name in enumerate(data.qid):
        for row in range(data.offsets[k], data.offsets[k + 1]):
            features = " ".join(f"{n + 1}:{value:.4f}" for n, value in enumerate(data.X[row]))
            lines.append(f"{data.grade[row]:g} qid:{name} {features}\n")
    path.write_text("".join(lines))


def main(folder: Path = FOLDER) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in TEXTS.items():
        (folder / name).write_text(text)
    for make in (votes, languages, judged, benchmarks, ratings):
        write_table(folder / f"{make.__name__}.csv", make())
    write_letor(folder / "search.letor", placet.simulate.queries(150, 10, 6, noise=0.5, random_state=0))
    lists = placet.simulate.queries(80, (5, 15), 4, 3, w=[1, 1, 1, 0], noise=0.5, random_state=1)
    write_letor(folder / "lists.letor", lists)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
