"""Tables 1 and 2: P@k and PSP@k of labels, PL-Partition beside PL-LB, RankNet and RankSVM in the same network.

PL-Partition has to come within 1.0 of the paper on D-1K and, in the mean over seeds, ahead of the other three in P@5 and PSP@5.
SLEEC and LEML are as the paper printed them (table 2).
"""

from label_runs import DEPTHS, arguments, compare

if __name__ == "__main__":
    names = [f"{name}@{k}" for name in ("P", "PSP") for k in DEPTHS]
    compare("table1", arguments(__doc__), names, ahead=["P@5", "PSP@5"])
