"""Figure 5.7: a target that moves along a spiral, 10 beacons, 4 signals, Poisson(4) clutter (P_C = 0.8), sigma 0.02,
P_D 0.7.
"""

from experiments.common import expected, parser
from experiments.dissertation.tracking_scenes import follow


def main() -> None:
    args = parser(__doc__).parse_args()
    follow("spiral", args, expected(__file__, "quick" if args.quick else ""))


if __name__ == "__main__":
    main()
