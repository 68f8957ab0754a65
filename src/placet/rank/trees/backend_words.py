"""Parameters of tree libraries that would be ignored where Placet computes the loss, and what to give instead."""

from collections.abc import Mapping
from typing import Any

LOSS = "Placet computes the loss: give loss= and loss_params="
METRIC = "Placet computes the metric: give metric= to the ranker, and valid= to fit"
STOPPING = "give patience= to the ranker, and valid= to fit"
FILES = "it belongs to the library's command line and files"
SCORING = "it acts when the library predicts, and Placet scores by itself"
NETWORK = "fit Parts with engine=client for several machines"
CLASSES = "it belongs to objectives for classes"
REGRESSION = "it belongs to objectives for regression"
TRUNCATION = "give loss='lambdarank' with loss_params={'k': ...}"
NORM = "give loss='lambdarank' with loss_params={'norm': True}"
GAIN = "give loss_params={'gain': ...}: a name or a function of the grade"
CATEGORIES = "this backend takes numbers; backend='lightgbm' takes columns of categories of a data frame"
TEXTS = "features are numbers; make them of texts and embeddings first"
ONE_TREE = "every tree is a model of its own to CatBoost"
POSITIONS = "give control= to fit, or use placet.rank.clicks, for effects of positions"


def _all(words: str, names: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), words)


REFUSED: dict[str, dict[str, str]] = {
    "lightgbm": {
        **_all(LOSS, "objective boost_from_average objective_seed"),
        **_all(CLASSES, "is_unbalance scale_pos_weight multi_error_top_k auc_mu_weights"),
        **_all(CLASSES, "pos_bagging_fraction neg_bagging_fraction"),
        **_all(REGRESSION, "alpha fair_c poisson_max_delta_step tweedie_variance_power reg_sqrt"),
        **_all(METRIC, "metric eval_at metric_freq is_provide_training_metric first_metric_only"),
        **_all(STOPPING, "early_stopping_round early_stopping_min_delta"),
        **_all(FILES, "config task data valid input_model output_model output_result convert_model save_binary header"),
        **_all(FILES, "convert_model_language snapshot_freq label_column weight_column group_column ignore_column"),
        **_all(FILES, "two_round precise_float_parser parser_config_file saved_feature_importance_type"),
        **_all(FILES, "refit_decay_rate"),
        **_all(SCORING, "num_iteration_predict start_iteration_predict predict_contrib predict_leaf_index"),
        **_all(SCORING, "predict_raw_score predict_disable_shape_check pred_early_stop pred_early_stop_freq"),
        **_all(SCORING, "pred_early_stop_margin"),
        **_all(NETWORK, "machines num_machines local_listen_port time_out machine_list_filename pre_partition"),
        **_all(NETWORK, "tree_learner top_k"),
        "linear_lambda": "leaves must hold one value",
        "bagging_by_query": "rows are drawn, not queries: give subsample=",
        "lambdarank_truncation_level": TRUNCATION,
        "lambdarank_norm": NORM,
        "label_gain": GAIN,
        "sigmoid": "give loss_params={'sigma': ...}",
        "lambdarank_position_bias_regularization": POSITIONS,
    },
    "xgboost": {
        **_all(LOSS, "objective base_score boost_from_average"),
        **_all(CLASSES, "scale_pos_weight"),
        **_all(REGRESSION, "tweedie_variance_power huber_slope quantile_alpha aft_loss_distribution"),
        **_all(METRIC, "eval_metric disable_default_eval_metric"),
        **_all(STOPPING, "early_stopping_rounds"),
        **_all(FILES, "updater updater_seq process_type refresh_leaf validate_parameters callbacks importance_type"),
        **_all("a ranker has one score per row", "multi_strategy num_target"),
        **_all("NaN is what is missing", "missing"),
        **_all("only plain sums of trees can be kept", "rate_drop one_drop skip_drop sample_type normalize_type"),
        **_all(TRUNCATION, "lambdarank_num_pair_per_sample lambdarank_pair_method"),
        **_all(NORM, "lambdarank_normalization lambdarank_score_normalization"),
        **_all(POSITIONS, "lambdarank_unbiased lambdarank_bias_norm"),
        **_all(GAIN, "ndcg_exp_gain"),
        **_all(CATEGORIES, "enable_categorical feature_types max_cat_to_onehot max_cat_threshold"),
        **_all("all features are drawn alike: give feature_fraction=", "feature_weights"),
        **_all("the table has them", "num_feature num_trees name version metrics"),
        "rng_state": "give random_state=",
    },
    "catboost": {
        **_all(LOSS, "loss_function objective boost_from_average custom_loss"),
        **_all(CLASSES, "scale_pos_weight class_weights auto_class_weights classes_count class_names target_border"),
        **_all(METRIC, "eval_metric custom_metric metric_period"),
        **_all(STOPPING, "od_type od_wait od_pval early_stopping_rounds use_best_model best_model_min_trees"),
        **_all(FILES, "train_dir save_snapshot snapshot_file snapshot_interval name callback roc_file verbose silent"),
        **_all(FILES, "metadata input_borders output_borders allow_const_label"),
        **_all("give valid= to fit: all rows given are learned from", "eval_fraction"),
        **_all(
            CATEGORIES, "cat_features one_hot_max_size max_ctr_complexity simple_ctr combinations_ctr per_feature_ctr"
        ),
        **_all(CATEGORIES, "counter_calc_method ctr_target_border_count ctr_leaf_count_limit store_all_simple_ctr"),
        **_all(CATEGORIES, "final_ctr_computation_mode ctr_description ctr_history_unit model_size_reg"),
        **_all(TEXTS, "text_features tokenizers dictionaries feature_calcers text_processing embedding_features"),
        **_all(ONE_TREE, "model_shrink_rate model_shrink_mode posterior_sampling approx_on_full_history"),
        **_all(ONE_TREE, "diffusion_temperature leaf_estimation_backtracking"),
        **_all("rows are drawn once for every tree: give subsample=", "sampling_unit sampling_frequency"),
        **_all("it belongs to GPUs, on which Placet does not run", "fixed_binary_splits"),
    },
}
"""Backend -> parameter, under its main name -> what to give instead."""


def refuse_ignored(own: Mapping[str, Any], backend: str) -> None:
    """Raise a ``ValueError`` if ``backend_params`` holds a parameter that would have no effect on Placet's trees."""
    for name in own:
        if name in REFUSED[backend]:
            raise ValueError(f"backend_params holds {name}, which would have no effect: {REFUSED[backend][name]}")


NUMBER_OF_TREES = (
    "n_estimators",
    "num_iterations",
    "num_iteration",
    "num_tree",
    "num_trees",
    "num_round",
    "num_rounds",
    "nrounds",
    "num_boost_round",
    "n_iter",
    "max_iter",
    "iterations",
)
"""What LightGBM, XGBoost and CatBoost call the number of trees."""

OTHER_NAMES = dict.fromkeys(NUMBER_OF_TREES, "n_trees") | {
    "num_leaves": "leaves",
    "max_leaves": "leaves",
    "min_child_samples": "min_rows",
    "min_data_in_leaf": "min_rows",
    "min_child_weight": "min_rows",
    "reg_lambda": "l2",
    "lambda_l2": "l2",
    "l2_leaf_reg": "l2",
    "colsample_bytree": "feature_fraction",
    "rsm": "feature_fraction",
    "bagging_fraction": "subsample",
    "eta": "learning_rate",
    "early_stopping_rounds": "patience, with fit(valid=...)",
    "objective": "loss",
    "loss_function": "loss",
    "eval_metric": "metric",
    "monotone_constraints": "monotone",
    "random_seed": "random_state",
    "seed": "random_state",
    "n_jobs": "placet.set_threads(n)",
    "lambdarank_truncation_level": "loss_params={'k': ...}",
    "lambdarank_norm": "loss_params={'norm': ...}",
    "label_gain": "loss_params={'gain': ...}",
    "sigmoid": "loss_params={'sigma': ...}",
}
"""Names in LightGBM, XGBoost and CatBoost -> what `TreeRanker` calls it."""
