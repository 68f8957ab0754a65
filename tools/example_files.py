"""Write docs/files: the files used by the how-to pages.  All are simulated from known parameters, with fixed seeds."""

import json
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
    "drinks.prefs": (
        "anna: tea > milk\nanna: tea > cocoa\nbert: cocoa > milk > water\nbert: tea > milk\ncarl: milk > tea > water\n"
    ),
    "council.ballots": "5: Ann > Bob > Cid\n1: Cid > Bob > Ann\n",
    "approvals.ballots": "5: Ann = Bob = Cid\n4: Dan = Eve\n1: Ann = Dan\n1: Bob\n",
    "trips.csv": (
        "id,alt,chosen,price,minutes,income\n"
        + "".join(
            f"{k + 1},{mode},{int(mode == chosen)},{price},{minutes},{income}\n"
            for k, (chosen, bus, car, income) in enumerate([
                ("bus", (2, 40), (5, 20), 1), ("car", (3, 50), (5, 15), 5), ("car", (2, 60), (9, 50), 2),
                ("bus", (1, 30), (3, 25), 3), ("car", (1, 20), (8, 18), 6), ("bus", (2, 35), (6, 25), 4),
                ("bus", (1, 45), (7, 30), 2), ("car", (3, 55), (4, 20), 3),
            ])
            for mode, (price, minutes) in (("bus", bus), ("car", car))
        )
    ),
    "engines.run": "".join(
        f"{query} Q0 {document} {k + 1} {4 - k} {engine}\n"
        for query, engine, documents in [
            ("cats", "one", "abcd"), ("cats", "two", "bad"), ("cats", "noise", "dc"),
            ("dogs", "one", "xyz"), ("dogs", "two", "xzy"), ("dogs", "noise", "zy"),
        ]
        for k, document in enumerate(documents)
    ),
    "one.run": "".join(f"{q} Q0 {d} {k + 1} {4 - k} one\n" for q, own in [("cats", "abcd"), ("dogs", "xyz")] for k, d in enumerate(own)),
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


def arena() -> dict[str, list]:
    """Votes on answers with their lengths: bee is the better model, ant the wordy one; 0.4 for 100 words, 0.2 for the first place."""
    rng = np.random.default_rng(3)
    skill, words = {"ant": 0.0, "bee": 0.4, "cat": -0.4}, {"ant": 400, "bee": 200, "cat": 250}
    rows = []
    for _ in range(3000):
        a, b = rng.choice(list(skill), 2, replace=False).tolist()
        length_a, length_b = (int(rng.normal(words[name], 80)) for name in (a, b))
        d = skill[a] - skill[b] + 0.004 * (length_a - length_b) + 0.2
        rows.append((a, b, "model_a" if rng.random() < 1 / (1 + np.exp(-d)) else "model_b", length_a, length_b))
    return columns(["model_a", "model_b", "winner", "length_a", "length_b"], rows)


def placed() -> dict[str, list]:
    """500 voters order three answers, shown in any order; each place further down costs 0.5."""
    rng = np.random.default_rng(4)
    rows = []
    for voter in range(500):
        shown = rng.permutation(3)
        s = np.array([0.0, 0.4, -0.4])[shown] - 0.5 * np.arange(3) + rng.gumbel(size=3)
        rank = np.argsort(np.argsort(-s)) + 1
        rows += [(voter, ("ant", "bee", "cat")[k], int(r), place) for place, (k, r) in enumerate(zip(shown, rank))]
    return columns(["voter", "item", "rank", "position"], rows)


def shown() -> dict[str, list]:
    """Graded rows that were shown in the order of a useless feature; those shown low were graded low."""
    rng = np.random.default_rng(5)
    rows = []
    for query in range(400):
        good, useless = rng.normal(size=(2, 5)).round(3)
        place = np.argsort(np.argsort(useless + 0.5 * rng.normal(size=5)))
        grade = np.argsort(np.argsort(good - 0.6 * place + rng.gumbel(size=5)))
        rows += [(query, *row) for row in zip(grade.tolist(), good.tolist(), useless.tolist(), place.tolist())]
    return columns(["qid", "label", "good", "useless", "place"], rows)


def raters() -> dict[str, list]:
    """30 raters of 100 votes each; the last three answer at random."""
    rng = np.random.default_rng(0)
    skill = dict(zip("abcdefgh", np.linspace(1.5, -1.5, 8)))
    rows = []
    for k in range(30):
        sharp = 0.0 if k >= 27 else rng.uniform(0.6, 1.6)
        shy, left = (
            rng.normal(0, 0.8),
            rng.normal(0, 0.5),
        )  # how readily it calls a tie, and how much it favors the left
        for _ in range(100):
            x, y = rng.choice(list(skill), 2, replace=False).tolist()
            d = sharp * (skill[x] - skill[y]) + left
            weight = np.array([np.exp(d / 2), np.exp(-d / 2), np.exp(shy)])
            rows.append((x, y, rng.choice(["left", "right", "tie"], p=weight / weight.sum()), f"rater {k}"))
    return columns(["left", "right", "winner", "worker"], rows)


def wines() -> dict[str, list]:
    """12 judges order four of six wines, ten times each; the last one at random."""
    rng = np.random.default_rng(1)
    taste = dict(zip("uvwxyz", np.linspace(2, -2, 6)))
    rows = []
    for ballot in range(120):
        judge, drunk = ballot % 12, rng.choice(list(taste), 4, replace=False).tolist()
        s = [(0.0 if judge == 11 else 1.0) * taste[wine] + rng.gumbel() for wine in drunk]
        rows += [(ballot, f"judge {judge}", drunk[k], place + 1) for place, k in enumerate(np.argsort(s)[::-1])]
    return columns(["ballot", "judge", "wine", "rank"], rows)


def games() -> dict[str, list]:
    """Games of five teams over 20 years: ant gets worse, bee gets better; playing at home is worth 0.4."""
    rng = np.random.default_rng(1)
    start, slope = {"ant": 1.5, "bee": -1.5, "cat": 0.3, "dog": 0.0, "eel": -0.3}, {"ant": -0.15, "bee": 0.15}
    rows = []
    for year in range(20):
        for _ in range(60):
            home, away = rng.choice(list(start), 2, replace=False).tolist()
            d = start[home] - start[away] + (slope.get(home, 0.0) - slope.get(away, 0.0)) * year + 0.4
            weight = np.array([np.exp(d / 2), np.exp(-d / 2), 0.6])
            result = rng.choice(["home", "away", "draw"], p=weight / weight.sum())
            rows.append((f"{2000 + year}-0{rng.integers(1, 10)}-15", home, away, result))
    return columns(["date", "home_team", "away_team", "result"], rows)


def tasks() -> dict[str, list]:
    """Scores of four models on 16 tasks; one cell is missing."""
    rng = np.random.default_rng(15)
    difficulty = rng.normal(0, 0.12, 16)
    table: dict[str, list] = {"model": ["ant", "bee", "cat", "dog"]}
    for t in range(16):
        table[f"task {t}"] = (
            (np.array([0.75, 0.74, 0.6, 0.4]) - difficulty[t] + rng.normal(0, 0.03, 4)).round(3).tolist()
        )
    table["task 3"][1] = None
    return table


def answers() -> dict[str, list]:
    """Which of three models solved which of 300 questions."""
    rng = np.random.default_rng(16)
    ability, hard = np.array([1.0, 0.9, 0.0]), rng.normal(0, 1.5, 300)
    right = rng.random((3, 300)) < 1 / (1 + np.exp(hard - ability[:, None]))
    return columns(
        ["model", "task", "question", "correct"],
        [("xyz"[m], "maths", q, int(right[m, q])) for m in range(3) for q in range(300)],
    )


def features() -> dict[str, list]:
    """60 queries of eight documents with three named features."""
    data = placet.simulate.queries(60, 8, 3, noise=0.5, random_state=0)
    rows = zip(np.array(data.qid)[data.query].tolist(), data.grade.astype(int).tolist(), *data.X.T.round(4).tolist())
    return columns(["qid", "label", "bm25", "fresh", "links"], list(rows))


def choices() -> dict[str, list]:
    """Choices of 75 savers, who mind the price, and 25 others, who want comfort; eight choices each."""
    savers = placet.simulate.choices(
        {"price": -1.5, "comfort": 0.2}, 400, alternatives=3, per_agent=8, spread=0.4, random_state=1
    )
    others = placet.simulate.choices(
        {"price": 0.0, "comfort": 1.5}, 200, alternatives=3, per_agent=8, spread=0.4, random_state=2
    )
    others["agent"], others["choice_set"] = others["agent"] + 50, others["choice_set"] + 400
    return {name: np.concatenate([savers[name], others[name]]).round(3).tolist() for name in savers}


def orders() -> dict[str, list]:
    """400 people with age and income, and their order of three drinks."""
    rng = np.random.default_rng(0)
    age, income = rng.normal(size=(2, 400)).round(3)
    s = np.column_stack([2 * age, income, -age - income]) + rng.gumbel(size=(400, 3))
    labels = np.array(["tea", "milk", "cocoa"])
    rows = zip(age.tolist(), income.tolist(), (" > ".join(labels[k]) for k in np.argsort(-s)))
    return columns(["age", "income", "order"], list(rows))


def clicks() -> dict[str, list]:
    """A log of clicks, with features: shown in the order of one that relevance does not follow, examined 1, 1/2, 1/3, ..."""
    data = documents()[:60]
    noise = np.random.default_rng(7).normal(size=len(data.grade))
    log = placet.simulate.clicks(data, 2 * data.X[:, 2] + noise, 8, random_state=1)
    own = log.document
    session = np.repeat(np.arange(len(log)), np.diff(log.offsets))
    query = np.array(data.qid)[data.query[own]]
    row = own - data.offsets[data.query[own]]
    named = [column.tolist() for column in (session, query, row, log.position, log.clicked.astype(int))]
    shown_features = data.X[own].round(2).T.tolist()
    names = ["session", "query", "document", "position", "clicked", "title", "spam", "fresh", "length"]
    return dict(zip(names, named + shown_features))


def documents() -> placet.Queries:
    """100 queries of six documents with four features: the first is good, the second bad, the others do not matter."""
    return placet.simulate.queries(100, 6, 4, noise=0.3, w=[1.0, -0.7, 0.0, 0.0], random_state=3)


def inspect_log(model: str, right: int) -> str:
    """A log of Inspect: the model answers the first questions of a quiz correctly, and the others not."""
    samples = [{"id": k, "epoch": 1, "scores": {"match": {"value": "C" if k < right else "I"}}} for k in range(12)]
    task = {"run_id": "r", "task": "quiz", "model": model}
    return json.dumps({"version": 2, "status": "success", "eval": task, "samples": samples}, indent=1) + "\n"


def tagged() -> str:
    """Documents of words with their tags, as extreme classification text: pets and animals, finance and news."""
    words = {"cat": 0, "dog": 1, "leash": 2, "bond": 3, "share": 4}
    tags = {"pets": 0, "animals": 1, "finance": 2, "news": 3, "sports": 4}
    texts = [("cat dog", "pets animals"), ("dog leash", "pets"), ("cat", "pets animals")]
    texts += [("bond share", "finance news"), ("share", "finance"), ("bond", "finance news")]
    lines = [
        ",".join(str(tags[t]) for t in own.split()) + "".join(f" {words[w]}:1" for w in text.split())
        for text, own in texts * 40
    ]
    return f"{len(lines)} {len(words)} {len(tags)}\n" + "\n".join(lines) + "\n"


def signals(folder: Path) -> None:
    """What a float heard in 60 days, the beacons, and where it was."""
    from placet.simulate.signals import ranked_signals, simulated_path
    from placet.tracking import Beacons
    from placet.tracking.track_files import write_beacons

    rng = np.random.default_rng(0)
    beacons = Beacons(rng.uniform(0, 10, (10, 2)).round(2), speed=1.0)
    way = simulated_path("line", 60, rng)
    drawn = ranked_signals(
        beacons, way, capacity=4, detection=0.7, clutter_rate=4, sigma=0.02, window=(0, 15), random_state=rng
    )
    heard = drawn.arrivals
    day = np.repeat(heard.day, np.diff(heard.offsets)).astype(int)
    source = [beacons.names[i] if i >= 0 else "clutter" for i in drawn.source]
    write_table(
        folder / "arrivals.csv", {"day": day.tolist(), "arrival_s": heard.time.round(3).tolist(), "source": source}
    )
    write_beacons(beacons, folder / "beacons.csv")
    x, y = way.T.round(3).tolist()
    write_table(folder / "truth.csv", {"day": heard.day.astype(int).tolist(), "x": x, "y": y})


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


TABLES = (
    votes, languages, judged, benchmarks, ratings, arena, placed, shown, raters, wines, games, tasks, answers, features, choices, orders, clicks,
)  # fmt: skip


def main(folder: Path = FOLDER) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in TEXTS.items():
        (folder / name).write_text(text)
    for make in TABLES:
        write_table(folder / f"{make.__name__}.csv", make())
    for model, right in (("ant", 9), ("bee", 6), ("cat", 2)):
        (folder / f"quiz-{model}.json").write_text(inspect_log(model, right))
    (folder / "tags.txt").write_text(tagged())
    signals(folder)
    names = ["cake", "pie", "tea", "ham", "cod"]
    sweet = placet.simulate.plackett_luce([2, 1, 0, -1, -2], 120, items=names, random_state=1)
    salty = placet.simulate.plackett_luce([-2, -1, 0, 1, 2], 80, items=names, random_state=2)
    placet.io.write(sweet + salty, folder / "meals.soc")
    asked = placet.simulate.best_worst(
        [1.5, 0.5, 0.0, -0.5, -1.5], 300, shown=4, items=["range", "price", "speed", "seats", "color"], random_state=1
    )
    placet.io.write(asked, folder / "maxdiff.csv", "best-worst")
    write_letor(folder / "documents.letor", documents()[60:])
    write_letor(folder / "search.letor", placet.simulate.queries(150, 10, 6, noise=0.5, random_state=0))
    lists = placet.simulate.queries(80, (5, 15), 4, 3, w=[1, 1, 1, 0], noise=0.5, random_state=1)
    write_letor(folder / "lists.letor", lists)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
