"""Table 4: nDCG@k and PSnDCG@k of the runs of table 1."""

from experiments.common import expected
from experiments.pl_partition.label_runs import DEPTHS, arguments, compare


def main() -> None:
    options = arguments(__doc__)
    names = [f"{name}@{k}" for name in ("nDCG", "PSnDCG") for k in DEPTHS]
    compare(expected(__file__, "quick" if options.quick else ""), options, names, ahead=["nDCG@5", "PSnDCG@5"])


if __name__ == "__main__":
    main()
