"""Coverage-guided fuzzing of every reader, which must return or raise ``DataError``.

    python fuzz/fuzz_readers.py [KIND] [libFuzzer options, such as -max_total_time=600 and a folder for the corpus]

KIND is a format (``letor``, ``ballots``, ..., ``read`` for the guessing reader) or ``all``, which lets the first byte choose.
Requires Atheris (``pip install atheris``), which nothing else depends on.
"""

import io
import sys
import warnings

import atheris

with atheris.instrument_imports(include=["placet.io", "placet.data"]):
    import placet.io as pio
    from placet.data import DataError

SEEDS = {
    "letor": b"1 qid:1 1:0.5 2:1 #docid = a\n0 qid:1 1:0.25 2:3e-5\n2 qid:b 2:-1 1:7\n",
    "letor-agg": b"1 qid:1 1:3 2:NULL #docid = a\n0 qid:1 1:1 2:1 #docid = b\n",
    "preflib": b"# DATA TYPE: toi\n# NUMBER ALTERNATIVES: 3\n# ALTERNATIVE NAME 1: x\n2: 1,{2,3}\n1: 3\n",
    "ballots": b'# items: A = B = C = "d e"\n3: A > B # c\n0.5: B > A = C\n"d e" = C\n',
    "battles": b'model_a,model_b,winner\nx,y,tie\n"y, z",z,model_a\nx,z,z\n',
    "ratings": b"1\t10\t3\t881250949\n1\t11\t5\t881250949\n",
    "trec-run": b"301 Q0 d1 1 2.5 tag\n301 Q0 d2 2 1.5 tag\n",
    "qrels": b"51 2 d1 1\n51 3 d1 -2\n",
    "xmc": b"2 3 4\n0,2 0:1 2:0.5\n 1:2\n",
    "csv": b"ballot,item,rank,weight\n1,A,1,2\n1,B,1,2\n2,B,1,1\n",
    "jsonl": b'{"model_a": "x", "model_b": "y", "winner": "tie"}\n{"model_a": "x", "model_b": "y", "winner": 1}\n',
    "json": b'[{"white": "x", "black": "y", "result": "1-0"}, {"white": "x", "black": "y", "result": null}]',
    "features": b"qid,label,f0,f1\n7,2,0.5,1\n7,0,0.25,3\n",
    "read": b"12: A > B\n",
}


def reader(kind):
    """The function to call for a kind."""
    if kind == "csv":
        return lambda source, **options: pio.read_ballots(source, format="csv", **options)
    if kind in ("json", "jsonl"):
        return lambda source, **options: pio.read_battles(source, format=kind, **options)
    return pio.read if kind == "read" else pio.FORMATS[kind].read


def one_input(calls):
    """The function that libFuzzer runs: the first byte chooses the reader and whether bad lines are skipped."""

    def run(data):
        if not data:
            return
        call = calls[data[0] // 2 % len(calls)]
        try:
            found = call(io.BytesIO(data[1:]), on_error="skip" if data[0] % 2 else "raise")
        except DataError:
            return
        repr(found)

    return run


def main():
    chosen = sys.argv[1] if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else "all"
    kinds = list(SEEDS) if chosen == "all" else [chosen]
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", pio.DataWarning)
    calls = [reader(kind) for kind in kinds]
    run = one_input(calls)
    for k, kind in enumerate(kinds):  # compile the kernels before timing starts, and check that the seeds can be read
        run(bytes([2 * k]) + SEEDS[kind])
    atheris.Setup([sys.argv[0], *(arg for arg in sys.argv[1:] if arg != chosen)], run)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
