"""Tables 1 and 2: P@k and PSP@k of labels, PL-Partition beside PL-LB, RankNet, RankSVM and ListNet in the same network.

PL-Partition has to come within 1.0 of the paper on D-1K and, in the mean over seeds, ahead of the paper's other three in P@5 and PSP@5.
ListNet, which the paper does not have, is ahead in P@5 and behind in PSP@5.
What the paper prints of SLEEC and LEML (table 2) is in README.md.
"""

from experiments.common import expected
from experiments.pl_partition.label_runs import DEPTHS, arguments, compare


def main() -> None:
    options = arguments(__doc__)
    names = [f"{name}@{k}" for name in ("P", "PSP") for k in DEPTHS]
    compare(expected(__file__, "quick" if options.quick else ""), options, names, ahead=["P@5", "PSP@5"])


if __name__ == "__main__":
    main()
