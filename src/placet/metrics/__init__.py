"""Ranking metrics: one value per list, NaN if undefined; tied scores share their places.

``METRICS[name](s, grade, offsets, ...)``, ``metric("ndcg@10")(s, grade, offsets)``, ``evaluate([...], s, grade,
offsets)``; then ``summary(values)``, ``compare(a, b)`` and ``compare_systems({name: values})``.
"""

from placet.data.gains import DISCOUNTS, GAINS
from placet.metrics.conventions import CONVENTIONS
from placet.metrics.human_and_judge import JudgedMean, judged_mean
from placet.metrics.interrater import Agreement, kendall_w, krippendorff_alpha
from placet.metrics.metric_table import ALIASES, METRICS, Metric, evaluate, evaluate_parts, metric
from placet.metrics.order_agreement import footrule, kendall_tau, rbo, spearman_rho
from placet.metrics.paired import MeanSummary, PairedDifference, compare, summary
from placet.metrics.propensity import propensities, psndcg, psp
from placet.metrics.ranking import Ranking, rank
from placet.metrics.relevance import average_precision, err, mrr, ndcg, precision, recall
from placet.metrics.subtopics import alpha_ndcg, err_ia
from placet.metrics.systems import CORRECTIONS, Pair, Systems, compare_systems
from placet.stats import holm

__all__ = [
    "ALIASES",
    "CONVENTIONS",
    "CORRECTIONS",
    "DISCOUNTS",
    "GAINS",
    "METRICS",
    "Agreement",
    "JudgedMean",
    "MeanSummary",
    "Metric",
    "Pair",
    "PairedDifference",
    "Ranking",
    "Systems",
    "alpha_ndcg",
    "average_precision",
    "compare",
    "compare_systems",
    "err",
    "err_ia",
    "evaluate",
    "evaluate_parts",
    "footrule",
    "holm",
    "judged_mean",
    "kendall_tau",
    "kendall_w",
    "krippendorff_alpha",
    "metric",
    "mrr",
    "ndcg",
    "precision",
    "propensities",
    "psndcg",
    "psp",
    "rank",
    "rbo",
    "recall",
    "spearman_rho",
    "summary",
]
