"""Breaks that the quick forms of the experiments must notice, one file per folder of experiments, three or more for each script."""

from experiments.breaks import (
    asking,
    clicks,
    dissertation,
    games,
    mpm,
    pl_partition,
    pmop,
    proof,
    quality,
    sources,
    structrank,
    uncertainty,
)

FOLDERS = (
    asking,
    clicks,
    dissertation,
    games,
    mpm,
    pl_partition,
    pmop,
    proof,
    quality,
    sources,
    structrank,
    uncertainty,
)
BREAKS = [mutant for folder in FOLDERS for mutant in folder.BREAKS]
