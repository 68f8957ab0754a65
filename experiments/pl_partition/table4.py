"""Table 4: nDCG@k and PSnDCG@k of the runs of table 1."""

from label_runs import DEPTHS, arguments, compare

if __name__ == "__main__":
    names = [f"{name}@{k}" for name in ("nDCG", "PSnDCG") for k in DEPTHS]
    compare("table4", arguments(__doc__), names, ahead=["nDCG@5", "PSnDCG@5"])
