"""Readers and writers of common file formats; readers validate, name the bad line, and drop nothing silently."""

from placet.io.ballots import read_ballots, write_ballots
from placet.io.battles import read_battles, write_battles
from placet.io.clicks import read_clicks
from placet.io.contests.game_tables import read_games
from placet.io.evals.alpaca_eval import read_alpaca_eval
from placet.io.evals.argilla import read_argilla
from placet.io.evals.every_eval_ever import read_every_eval_ever
from placet.io.evals.fastchat import read_fastchat_pairs, read_fastchat_scores
from placet.io.evals.helm import read_helm
from placet.io.evals.inspect_logs import read_inspect
from placet.io.evals.label_studio import read_label_studio
from placet.io.evals.lm_harness import read_lm_harness_results, read_lm_harness_samples
from placet.io.evals.open_webui import read_open_webui
from placet.io.features import read_features, write_features
from placet.io.formats import FORMATS, Format, read, write
from placet.io.judged_scores import Judged, judge, judge_labels, read_judged, read_score_lines, score_rows
from placet.io.preferences import read_preferences, write_preferences
from placet.io.preflib import read_preflib, write_preflib
from placet.io.ratings import read_ratings, write_ratings
from placet.io.scanning.scan_files import scan
from placet.io.scanning.table_slices import read_slices
from placet.io.score_tables import read_scores, write_scores
from placet.io.several_files import read_files, to_aggregate
from placet.io.sparse.labeled_texts import LabeledTexts, read_labeled_texts
from placet.io.sparse.letor import LetorAgg, read_letor, read_letor_agg, read_sizes, write_letor, write_letor_agg
from placet.io.sparse.xmc import MultiLabel, read_label_scores, read_xmc, write_label_scores, write_xmc
from placet.io.surveys.best_worst import read_best_worst, write_best_worst
from placet.io.surveys.choice_tables import ChoiceTable, read_choices
from placet.io.surveys.label_orders import orders_of, read_label_orders
from placet.io.surveys.qualtrics import read_qualtrics
from placet.io.surveys.surveyjs import read_surveyjs
from placet.io.tables.item_tables import read_item_columns
from placet.io.text import DataWarning
from placet.io.trec import Qrels, read_qrels, read_trec_run, write_qrels, write_trec_run

__all__ = [
    "FORMATS",
    "ChoiceTable",
    "DataWarning",
    "Format",
    "Judged",
    "LabeledTexts",
    "LetorAgg",
    "MultiLabel",
    "Qrels",
    "judge",
    "judge_labels",
    "orders_of",
    "read",
    "read_alpaca_eval",
    "read_argilla",
    "read_ballots",
    "read_battles",
    "read_best_worst",
    "read_choices",
    "read_clicks",
    "read_every_eval_ever",
    "read_fastchat_pairs",
    "read_fastchat_scores",
    "read_features",
    "read_files",
    "read_games",
    "read_helm",
    "read_inspect",
    "read_item_columns",
    "read_judged",
    "read_label_orders",
    "read_label_scores",
    "read_label_studio",
    "read_labeled_texts",
    "read_letor",
    "read_letor_agg",
    "read_lm_harness_results",
    "read_lm_harness_samples",
    "read_open_webui",
    "read_preferences",
    "read_preflib",
    "read_qrels",
    "read_qualtrics",
    "read_ratings",
    "read_score_lines",
    "read_scores",
    "read_sizes",
    "read_slices",
    "read_surveyjs",
    "read_trec_run",
    "read_xmc",
    "scan",
    "score_rows",
    "to_aggregate",
    "write",
    "write_ballots",
    "write_battles",
    "write_best_worst",
    "write_features",
    "write_label_scores",
    "write_letor",
    "write_letor_agg",
    "write_preferences",
    "write_preflib",
    "write_qrels",
    "write_ratings",
    "write_scores",
    "write_trec_run",
    "write_xmc",
]
