"""Figure 5.6: a target that moves along a straight line, 10 beacons, 4 signals, Poisson(4) clutter (P_C = 0.8), sigma
0.02, P_D 0.7.
"""

from tracking_scenes import arguments, follow

if __name__ == "__main__":
    follow("figure5_6", "line", arguments(__doc__).quick)
