"""``placet demo``: a complete workflow on simulated data, from files to a ranking, a report and a trained ranker."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from placet.cli.common.consensus_output import show_result
from placet.cli.common.console_output import say, show_table
from placet.cli.common.options import SeedOption
from placet.cli.common.simulated_items import names, truth


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Folder for what the demo writes.")] = Path(
        "demo"
    ),
    seed: SeedOption = 0,
) -> None:
    """Simulate votes, ballots and search results; rank, measure, and write a report page."""
    out.mkdir(parents=True, exist_ok=True)
    _votes(out, seed)
    _ballots(out, seed)
    _search(out, seed)
    program = sys.argv[0] if Path(sys.argv[0]).name == "placet" else "placet"
    say(f"\nTo look at all this in a browser: {program} serve {out}/votes.csv {out}/ballots.txt {out}/search.csv")


def _votes(out: Path, seed: int) -> None:
    """A leaderboard from pairwise votes with ties."""
    from placet import simulate
    from placet.aggregate import consensus
    from placet.io import read, write
    from placet.report import write_consensus_page

    path = out / "votes.csv"
    write(simulate.battles(truth(12, 0.7, seed), 3000, tie=-0.5, items=names(12), random_state=seed), path)
    votes = read(path)
    say(f"1. {path}: {votes!r}, simulated; true order item-1, item-2, ...")
    result = consensus(votes)
    show_result(result, 0.95)
    page = out / "leaderboard.html"
    write_consensus_page(page, result, votes, title="A leaderboard from 3,000 simulated votes")
    say(f"   report: {page}\n")


def _ballots(out: Path, seed: int) -> None:
    """A consensus of incomplete ballots with ties, by a model and by rules."""
    from placet import simulate
    from placet.aggregate import consensus
    from placet.io import read, write

    path = out / "ballots.txt"
    drawn = simulate.plackett_luce(truth(8, 0.8, seed), 300, partition=3, subset=6, items=names(8), random_state=seed)
    write(drawn, path)
    ballots = read(path)
    say(f"2. {path}: {ballots!r}, with ties and absences")
    rows = [[method, " > ".join(_place(p) for p in consensus(ballots, method).ranking)] for method in METHODS]
    show_table(["method", "consensus"], rows)
    say("")


METHODS = ("plackett-luce", "borda", "copeland")


def _place(place: object) -> str:
    return " = ".join(map(str, place)) if isinstance(place, tuple) else str(place)


def _search(out: Path, seed: int) -> None:
    """Rankers trained on graded search results, evaluated on held-out queries."""
    from placet import simulate
    from placet.io import read, write
    from placet.metrics import evaluate, summary
    from placet.rank.linear.linear_ranker import LinearRanker

    path = out / "search.csv"
    write(simulate.queries(150, 40, 12, random_state=seed), path)
    queries = read(path)
    train, test = queries[:100], queries[100:]
    say(f"3. {path}: {queries!r}; trained on 100 queries, measured on the other 50")
    rows = []
    for loss in ("pl-partition", "listnet"):
        ranker = LinearRanker(loss).fit(train)
        scores = ranker.predict(test)
        values = evaluate(["ndcg@10", "map"], scores, test.grade, test.offsets)
        rows.append([f"linear, {loss}", *(summary(v).mean for v in values.values())])
        ranker.save(out / f"{loss}.placet")
    show_table(["ranker", "ndcg@10", "map"], rows)
    say(f"   models: {out}/*.placet")
