"""Running time of every reader against the size of its file, to check that it is linear.

    python -m benchmarks.bench_growth [--quick]

Files have 1, 2, 4 and 8 units; the exponent is the slope of log time against log size between the largest two (1 is
linear, 2 quadratic).  They include wide tables, single long lines and compressed files, which are prone to quadratic
time.
"""

import gzip
import io
import math
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator

import numpy as np
import zstandard

import placet
from benchmarks.harness import main

RNG = np.random.default_rng(0)


def _battles(n: int) -> bytes:
    rows = RNG.integers(0, 200, (n, 2))
    return b"model_a,model_b,winner\n" + b"".join(b"m%d,n%d,model_a\n" % (a, b) for a, b in rows.tolist())


def _ballots(n: int) -> bytes:
    return b"".join(b" > ".join(b"i%d" % k for k in RNG.permutation(10).tolist()) + b"\n" for _ in range(n // 10))


def _one_long_ballot(n: int) -> bytes:
    return b" > ".join(b"i%d" % k for k in range(n)) + b"\n"


def _preflib(n: int) -> bytes:
    names = b"".join(b"# ALTERNATIVE NAME %d: i%d\n" % (k + 1, k) for k in range(10))
    lines = [b"1: " + b",".join(b"%d" % (k + 1) for k in RNG.permutation(10).tolist()) + b"\n" for _ in range(n // 10)]
    head = b"# FILE NAME: x.soc\n# NUMBER ALTERNATIVES: 10\n# NUMBER VOTERS: %d\n# NUMBER UNIQUE ORDERS: %d\n" % (
        len(lines),
        len(lines),
    )
    return head + names + b"".join(lines)


def _preflib_many_names(n: int) -> bytes:
    names = b"".join(b"# ALTERNATIVE NAME %d: i%d\n" % (k + 1, k) for k in range(n))
    head = b"# FILE NAME: x.soi\n# NUMBER ALTERNATIVES: %d\n# NUMBER VOTERS: 1\n# NUMBER UNIQUE ORDERS: 1\n" % n
    return head + names + b"1: 1,2,3\n"


def _letor(n: int) -> bytes:
    return b"".join(b"%d qid:%d 1:0.5 2:%d 7:1\n" % (k % 3, k // 20, k) for k in range(n))


def _ratings(n: int) -> bytes:
    return b"user,item,rating\n" + b"".join(b"u%d,i%d,%d\n" % (k // 20, k % 20, k % 5) for k in range(n))


def _wide(n: int) -> bytes:
    columns = n // 20
    head = b"ballot," + b",".join(b"i%d" % k for k in range(columns)) + b"\n"
    return head + b"".join(b"b%d," % r + b",".join(b"%d" % (k + 1) for k in range(columns)) + b"\n" for r in range(20))


def _columns(n: int, head: bytes, name: bytes, start: bytes, cell: Callable[[int, int], bytes]) -> bytes:
    """Twenty rows of n / 20 columns, after the columns named in ``head`` and filled by ``start``; one line is blank."""
    columns = range(n // 20)
    rows = (start + b",".join(cell(row, k) for k in columns) + b"\n" for row in range(20))
    return head + b",".join(name + b"%d" % (k + 1) for k in columns) + b"\n\n" + b"".join(rows)


def _places(n: int) -> bytes:
    return _columns(n, b"", b"choice ", b"", lambda _, k: b"i%d" % k)


def _features(n: int) -> bytes:
    return _columns(n, b"qid,label,", b"f", b"1,2,", lambda row, k: b"0.%d" % (k + row))


def _letor_agg(n: int) -> bytes:
    return b"".join(b"%d qid:%d 1:%d 2:NULL 3:%d\n" % (k % 3, k // 20, k % 20 + 1, (7 * k) % 20 + 1) for k in range(n))


def _letor_wide(n: int) -> bytes:
    columns = b" ".join(b"%d:0.5" % (k + 1) for k in range(n // 20))
    return b"".join(b"%d qid:%d %s\n" % (k % 3, k // 5, columns) for k in range(20))


def _xmc(n: int) -> bytes:
    rows = b"".join(b"%d,%d 1:0.5 %d:1.5\n" % (k % 50, 50 + k % 40, 5 + k % 90) for k in range(n))
    return b"%d 100 100\n" % n + rows


def _xmc_one_row(n: int) -> bytes:
    """One row with n labels and n features."""
    labels = b",".join(b"%d" % k for k in range(n))
    return b"1 %d %d\n" % (n, n) + labels + b" " + b" ".join(b"%d:1" % k for k in range(n)) + b"\n"


def _run(n: int) -> bytes:
    return b"".join(b"q%d Q0 d%d %d %f s\n" % (k // 100, k % 100, k % 100 + 1, -k) for k in range(n))


def _qrels(n: int) -> bytes:
    return b"".join(b"q%d 0 d%d %d\n" % (k // 100, k % 100, k % 3) for k in range(n))


def _games(n: int) -> bytes:
    rows = (f"team {k % 300},team {(k * 7 + 1) % 299 + 300},{k % 5},{k % 3}" for k in range(n))
    return "\n".join(["home_team,away_team,home_score,away_score", *rows]).encode()


def _scores(n: int) -> bytes:
    return b"model,task,score\n" + b"".join(b"m%d,t%d,0.%d\n" % (k % 50, k // 50, k % 97) for k in range(n))


def _preferences(n: int) -> bytes:
    return b"ballot,better,worse\n" + b"".join(b"b%d,i%d,i%d\n" % (k // 3, k % 3, k % 3 + 1) for k in range(n))


def _one_rater(n: int) -> bytes:
    """All preferences of one person, which form a chain."""
    return b"ballot,better,worse\n" + b"".join(b"b,i%d,i%d\n" % (k, k + 1) for k in range(n))


def _abif(n: int) -> bytes:
    return b"".join(b"%d: a%d > b > c%d\n" % (k % 9 + 1, k % 50, k % 30) for k in range(n // 3))


def _jsonl(n: int) -> bytes:
    return b"".join(b'{"model_a": "m%d", "model_b": "n%d", "winner": "model_a"}\n' % (k % 70, k % 90) for k in range(n))


def _json(n: int) -> bytes:
    return b"[" + b",".join(_jsonl(n).splitlines()) + b"]"


def _parquet(n: int) -> bytes:
    import polars as pl

    rows = RNG.integers(0, 200, (n, 2))
    frame = pl.DataFrame({"model_a": [f"m{a}" for a in rows[:, 0]], "model_b": [f"n{b}" for b in rows[:, 1]]})
    out = io.BytesIO()
    frame.with_columns(winner=pl.lit("model_a")).write_parquet(out)
    return out.getvalue()


def _with_a_bad_line(n: int) -> bytes:
    """Votes that must be read record by record, because one line has an extra field."""
    return _battles(n) + b"a,b,model_a,x\n"


def _best_worst(n: int) -> bytes:
    rows = (f"a{k % 7},b{k % 5},c{k % 3},b{k % 5},a{k % 7}\n" for k in range(n))
    return ("item1,item2,item3,best,worst\n" + "".join(rows)).encode()


def _qualtrics(n: int) -> bytes:
    head = 'Q1_1,Q1_2\nRank - x,Rank - y\n"{""ImportId"":""1""}","{""ImportId"":""2""}"\n'
    return (head + "".join(f"{1 + k % 2},{2 - k % 2}\n" for k in range(n))).encode()


def _lines(record: Callable[[int], str]) -> Callable[[int], bytes]:
    return lambda n: "".join(record(k) + "\n" for k in range(n)).encode()


_surveyjs = _lines(lambda k: '{"q": ["x", "y"]}' if k % 2 else '{"q": ["y", "x"]}')
_answers = _lines(
    lambda k: (
        f'{{"schema_version": "0.2", "model_id": "m{k % 9}", "evaluation_name": "t", "sample_id": "{k // 9}", '
        f'"evaluation": {{"score": {k % 2}}}}}'
    )
)
_judged_pairs = _lines(
    lambda k: (
        f'{{"model_1": "m{k % 9}", "model_2": "n{k % 7}", "g1_winner": "model_1", "g2_winner": "tie", "judge": ["u"]}}'
    )
)
_judged_answers = _lines(
    lambda k: (
        f'{{"question_id": {k // 9}, "model": "m{k % 9}", "judge": ["u"], "judgment": "", "score": {k % 9}, "turn": 1}}'
    )
)
_feedback = _lines(
    lambda k: (
        f'{{"user_id": "u{k % 99}", "type": "rating", "data": {{"rating": 1, "model_id": "m{k % 9}", '
        '"sibling_model_ids": ["z"]}}'
    )
)
_preferred = _lines(
    lambda k: (
        f'{{"output_1": "a", "generator_1": "m{k % 9}", "output_2": "b", "generator_2": "n{k % 7}", '
        f'"preference": {1 + k % 2}, "annotator": "u"}}'
    )
)
_harness_samples = _lines(
    lambda k: (
        f'{{"doc_id": {k}, "doc": {{}}, "target": "", "arguments": {{}}, "resps": [], "filtered_resps": [], '
        f'"filter": "none", "metrics": ["acc"], "acc": {k % 2}}}'
    )
)


def _harness_results(n: int) -> bytes:
    tasks = (f'"t{k}": {{"alias": "t", "acc,none": 0.{k}, "acc_stderr,none": 0.1}}' for k in range(n))
    return ('{"results": {' + ", ".join(tasks) + '}, "model_name": "m"}').encode()


def _inspect(n: int) -> bytes:
    samples = (f'{{"id": {k}, "epoch": 1, "scores": {{"match": {{"value": "{"CI"[k % 2]}"}}}}}}' for k in range(n))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("_journal/start.json", '{"version": 2, "eval": {"model": "m", "task": "t"}}')
        archive.writestr("summaries.json", "[" + ", ".join(samples) + "]")
    return out.getvalue()


def _helm(n: int) -> bytes:
    instance = '{{"instance_id": "id{0}", "train_trial_index": 0, "stats": [{{"name": {{"name": "em"}}, "mean": 1}}]}}'
    return ("[" + ", ".join(instance.format(k) for k in range(n)) + "]").encode()


def _label_studio(n: int) -> bytes:
    task = (
        '{{"data": {{"model_a": "m{0}", "model_b": "n{1}"}}, "annotations": [{{"completed_by": 1, "result": '
        '[{{"type": "pairwise", "to_name": "a,b", "value": {{"selected": "left"}}}}]}}]}}'
    )
    return ("[" + ", ".join(task.format(k % 9, k % 7) for k in range(n)) + "]").encode()


def _argilla(n: int) -> bytes:
    record = (
        '{{"fields": {{}}, "metadata": {{}}, "suggestions": {{}}, "responses": {{"q": [{{"user_id": "u{0}", "value": '
        '[{{"value": "x", "rank": 1}}, {{"value": "y", "rank": 2}}]}}]}}}}'
    )
    return ("[" + ", ".join(map(record.format, range(n))) + "]").encode()


READERS: dict[str, tuple[Callable[[int], bytes], str, str, int]] = {
    "battles, csv": (_battles, "x.csv", "battles", 40_000),
    "ballots, text": (_ballots, "x.txt", "ballots", 80_000),
    "one ballot on one line": (_one_long_ballot, "x.txt", "ballots", 40_000),
    "preflib": (_preflib, "x.soc", "preflib", 60_000),
    "preflib, many names": (_preflib_many_names, "x.soi", "preflib", 20_000),
    "letor": (_letor, "x.letor", "letor", 100_000),
    "ratings, csv": (_ratings, "x.csv", "ratings", 80_000),
    "a wide table of ranks": (_wide, "x.csv", "ballots", 40_000),
    "a wide table of places": (_places, "x.csv", "ballots", 40_000),
    "a wide table of features": (_features, "x.csv", "features", 40_000),
    "battles, gz": (lambda n: gzip.compress(_battles(n)), "x.csv.gz", "battles", 40_000),
    "letor-agg": (_letor_agg, "x.agg", "letor-agg", 60_000),
    "letor, wide": (_letor_wide, "x.letor", "letor", 200_000),
    "xmc": (_xmc, "x.xmc", "xmc", 60_000),
    "xmc, one row": (_xmc_one_row, "x.xmc", "xmc", 100_000),
    "trec-run": (_run, "x.run", "trec-run", 60_000),
    "qrels": (_qrels, "x.qrels", "qrels", 60_000),
    "scores": (_scores, "x.csv", "scores", 60_000),
    "games": (_games, "x.csv", "games", 40_000),
    "preferences": (_preferences, "x.csv", "preferences", 30_000),
    "preferences, one ballot": (_one_rater, "x.csv", "preferences", 10_000),
    "best-worst": (_best_worst, "x.csv", "best-worst", 40_000),
    "qualtrics": (_qualtrics, "x.csv", "qualtrics", 40_000),
    "surveyjs": (_surveyjs, "x.jsonl", "surveyjs", 40_000),
    "every-eval-ever": (_answers, "x.jsonl", "every-eval-ever", 40_000),
    "fastchat-pairs": (_judged_pairs, "x.jsonl", "fastchat-pairs", 20_000),
    "fastchat-scores": (_judged_answers, "x.jsonl", "fastchat-scores", 40_000),
    "open-webui": (_feedback, "x.jsonl", "open-webui", 40_000),
    "alpaca-eval": (_preferred, "x.json", "alpaca-eval", 40_000),
    "inspect": (_inspect, "x.eval", "inspect", 40_000),
    "lm-harness-samples": (
        _harness_samples,
        "m/samples_t_2026-01-01T00-00-00.0.jsonl",
        "lm-harness-samples",
        40_000,
    ),
    "lm-harness-results": (_harness_results, "x.json", "lm-harness-results", 40_000),
    "helm": (_helm, "t:model=m/per_instance_stats.json", "helm", 40_000),
    "label-studio": (_label_studio, "x.json", "label-studio", 40_000),
    "argilla": (_argilla, "x.json", "argilla", 40_000),
    "ballots with counts": (_abif, "x.abif", "ballots", 60_000),
    "battles, jsonl": (_jsonl, "x.jsonl", "battles", 40_000),
    "battles, json": (_json, "x.json", "battles", 40_000),
    "battles, parquet": (_parquet, "x.parquet", "battles", 200_000),
    "battles, a bad line": (_with_a_bad_line, "x.csv", "battles", 40_000),
    "zeros, zst": (lambda n: zstandard.compress(b"a > b\n" * n), "x.txt.zst", "ballots", 80_000),
}


def exponents(unit: float = 1.0) -> Iterator[tuple[str, list[float], float]]:
    """Yield the name of every reader, its seconds at 1, 2, 4 and 8 units, and the exponent."""
    for name, (make, file, format, n) in READERS.items():
        seconds = []
        for size in (1, 2, 4, 8):
            data = make(int(size * n * unit))
            best = math.inf
            for _ in range(2):
                source = io.BytesIO(data)
                source.name = file
                start = time.process_time()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    placet.read(source, format, on_error="skip")
                best = min(best, time.process_time() - start)
            seconds.append(best)
        yield name, seconds, math.log2(max(seconds[3], 1e-3) / max(seconds[2], 1e-3))


def growth(quick: bool) -> None:
    """Print the CPU seconds of every reader at four sizes."""
    for name, seconds, exponent in exponents(0.1 if quick else 1.0):
        print(f"{name:26} " + " ".join(f"{s:8.3f}" for s in seconds) + f"   exponent {exponent:.2f}", flush=True)


if __name__ == "__main__":
    main(__doc__, {"growth": growth})
