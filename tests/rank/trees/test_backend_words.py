"""No parameter of a tree library is ignored: it changes the trees, acts on speed only, or is refused in words."""

import inspect
import json
import warnings

import numpy as np
import pytest

from placet.rank import TreeRanker
from placet.rank.trees.backend_words import NUMBER_OF_TREES, OTHER_NAMES, REFUSED
from placet.rank.trees.tree_libraries import lightgbm_names
from placet.simulate import queries

DATA = queries(40, 10, 4, grades=3, noise=0.3, random_state=3)
X = np.round(np.array(DATA.X), 1)
PLACES = np.clip(np.round(5 + 2 * X[:, :3].sum(axis=1)), 0, 9).astype(int)
X[:, 3] = np.array([3, 7, 1, 9, 0, 5, 2, 8, 4, 6])[PLACES]  # categories
CAT = {"categorical_feature": [3], "min_data_per_group": 1, "cat_smooth": 1}
DART, GOSS = {"boosting": "dart"}, {"data_sample_strategy": "goss"}
SPEED = """num_threads device_type force_col_wise force_row_wise histogram_pool_size verbosity deterministic is_enable_sparse
enable_bundle gpu_platform_id gpu_device_id gpu_device_id_list gpu_use_dp num_gpu feature_pre_filter""".split()
ELSEWHERE = (
    "num_class linear_tree num_iterations forcedsplits_filename forcedbins_filename".split()
)  # other tests; a file
TRIALS = {
    "lightgbm": {
        "learning_rate": (0.5, {}), "num_leaves": (3, {}), "min_data_in_leaf": (30, {}), "lambda_l2": (50, {}),
        "min_sum_hessian_in_leaf": (50, {}), "bagging_fraction": (0.4, {}), "bagging_freq": (3, {}),
        "bagging_seed": (9, {}),
        "feature_fraction": (0.3, {}), "feature_fraction_seed": (9, {}), "seed": (9, {}), "max_depth": (2, {}),
        "feature_fraction_bynode": (0.3, {}), "extra_trees": (True, {}), "extra_seed": (77, {"extra_trees": True}),
        "max_delta_step": (0.1, {}), "lambda_l1": (9, {}), "min_gain_to_split": (9, {}), "path_smooth": (50, {}),
        "boosting": ("dart", {}), "data_sample_strategy": ("goss", {"bagging_freq": 0, "learning_rate": 0.5}),
        "drop_rate": (0.9, DART), "max_drop": (1, {**DART, "drop_rate": 0.9}), "skip_drop": (0.0, DART),
        "uniform_drop": (True, {**DART, "drop_rate": 0.5, "skip_drop": 0.0, "xgboost_dart_mode": True}),
        "xgboost_dart_mode": (True, {**DART, "drop_rate": 0.9, "skip_drop": 0.0}),
        "drop_seed": (99, {**DART, "drop_rate": 0.5}), "monotone_constraints": ([1, 0, 0, 0], {}),
        "monotone_constraints_method": ("advanced", {"monotone_constraints": [1, -1, 1, 0]}),
        "monotone_penalty": (2.0, {"monotone_constraints": [1, -1, 1, 0]}), "feature_contri": ([0.01, 1, 1, 1], {}),
        "interaction_constraints": ([[0], [1], [2, 3]], {}), "cegb_penalty_split": (1.0, {}),
        "cegb_tradeoff": (9.0, {"cegb_penalty_split": 0.1}),
        "cegb_penalty_feature_lazy": ([9, 9, 9, 9], {}), "cegb_penalty_feature_coupled": ([99, 99, 99, 99], {}),
        "max_bin": (5, {}), "max_bin_by_feature": ([4, 4, 4, 4], {}), "min_data_in_bin": (40, {}),
        "bin_construct_sample_cnt": (20, {}),
        "data_random_seed": (9, {"bin_construct_sample_cnt": 20}), "categorical_feature": ([3], {}),
        "max_cat_threshold": (1, {**CAT, "max_cat_to_onehot": 1}), "cat_l2": (900, {**CAT, "max_cat_to_onehot": 1}),
        "cat_smooth": (900, {"categorical_feature": [3], "max_cat_to_onehot": 1, "min_data_per_group": 1}),
        "max_cat_to_onehot": (100, CAT),
        "min_data_per_group": (1, {"categorical_feature": [3], "max_cat_to_onehot": 1, "cat_smooth": 1}),
        "use_missing": (False, {}), "zero_as_missing": (True, {}), "use_quantized_grad": (True, {}),
        "num_grad_quant_bins": (16, {"use_quantized_grad": True}),
        "quant_train_renew_leaf": (True, {"use_quantized_grad": True}),
        "stochastic_rounding": (False, {"use_quantized_grad": True}),
        "top_rate": (0.5, {**GOSS, "bagging_freq": 0, "learning_rate": 0.5}),
        "other_rate": (0.3, {**GOSS, "bagging_freq": 0, "learning_rate": 0.5}),
    },
    "xgboost": {
        "eta": (0.5, {}), "learning_rate": (0.5, {}), "max_depth": (1, {}), "max_leaves": (3, {}),
        "min_child_weight": (30, {}),
        "lambda": (50, {}), "reg_lambda": (50, {}), "alpha": (9, {}), "reg_alpha": (9, {}), "gamma": (9, {}),
        "min_split_loss": (9, {}),
        "max_delta_step": (0.1, {}), "subsample": (0.4, {}), "colsample_bytree": (0.3, {}),
        "colsample_bylevel": (0.3, {}),
        "colsample_bynode": (0.3, {}), "seed": (9, {}), "random_state": (9, {}), "seed_per_iteration": (True, {}),
        "max_bin": (4, {}),
        "grow_policy": ("depthwise", {"max_leaves": 4}),
        "tree_method": ("exact", {"max_leaves": 0, "max_depth": 3, "max_bin": 4}),
        "num_parallel_tree": (3, {}), "sampling_method": ("gradient_based", {"subsample": 0.4}),
        "monotone_constraints": ("(1,0,0,0)", {}), "interaction_constraints": ("[[0],[1],[2,3]]", {}),
    },
    "catboost": {
        "learning_rate": (0.5, {}), "eta": (0.5, {}), "depth": (2, {}), "max_depth": (2, {}), "l2_leaf_reg": (50, {}),
        "reg_lambda": (50, {}), "rsm": (0.3, {}), "colsample_bylevel": (0.3, {}), "subsample": (0.4, {}),
        "bootstrap_type": ("Bayesian", {}), "bagging_temperature": (5.0, {"bootstrap_type": "Bayesian"}),
        "mvs_reg": (5.0, {"bootstrap_type": "MVS", "subsample": 0.4}), "random_strength": (5.0, {}),
        "random_seed": (9, {}), "random_state": (9, {}), "score_function": ("Cosine", {}),
        "grow_policy": ("Depthwise", {}), "max_leaves": (3, {"grow_policy": "Lossguide"}),
        "num_leaves": (3, {"grow_policy": "Lossguide"}), "min_data_in_leaf": (60, {"grow_policy": "Depthwise"}),
        "min_child_samples": (60, {"grow_policy": "Depthwise"}), "monotone_constraints": ([1, 0, 0, 0], {}),
        "border_count": (3, {}), "max_bin": (3, {}), "feature_border_type": ("Uniform", {"border_count": 4}),
        "per_float_feature_quantization": (["1:border_count=2"], {}), "nan_mode": ("Max", {}),
        "leaf_estimation_method": ("Gradient", {}), "leaf_estimation_iterations": (5, {}),
        "feature_weights": ([0.01, 1, 1, 1], {}), "first_feature_use_penalties": ([50, 0, 0, 0], {}),
        "penalties_coefficient": (50.0, {"first_feature_use_penalties": [1, 1, 1, 1]}),
        "per_object_feature_penalties": ([9, 0, 0, 0], {}), "boosting_type": ("Ordered", {}),
        "ignored_features": ([0], {}), "langevin": (True, {}), "random_score_type": ("Gumbel", {"random_strength": 5.0}),
        "fold_len_multiplier": (1.5, {"boosting_type": "Ordered"}), "fold_permutation_block": (3, {"boosting_type": "Ordered"}),
        "has_time": (True, {"boosting_type": "Ordered"}),
    },
}  # fmt: skip
"""Parameter -> (a value with an effect, what must be given along with it)."""


def scores(own, backend="lightgbm"):
    rows = X.copy()
    rows[::7, 0] = np.nan
    fitted = TreeRanker(n_trees=8, min_rows=2, leaves=6, backend=backend, backend_params=own)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fitted.fit(rows, DATA.grade, qid=DATA.query).predict(rows)


def test_every_parameter_of_lightgbm_has_a_place():
    known = set(lightgbm_names().values())
    assert known == {*TRIALS["lightgbm"], *SPEED, *ELSEWHERE, *REFUSED["lightgbm"]}


@pytest.mark.parametrize(("backend", "name"), [(backend, name) for backend, found in TRIALS.items() for name in found])
def test_parameters_have_an_effect(backend, name):
    pytest.importorskip(backend)
    value, along = TRIALS[backend][name]
    assert not np.array_equal(scores(along, backend), scores({**along, name: value}, backend))


def test_every_parameter_of_xgboost_has_a_place():
    """Those of its model and of its scikit-learn interface: an effect, speed only, or refused."""
    xgb = pytest.importorskip("xgboost")
    data = xgb.DMatrix(np.zeros((2, 1)), np.zeros(2))
    config = json.loads(xgb.Booster({"tree_method": "hist", "num_feature": 1}, [data]).save_config())
    known = {*leaves_of(config["learner"]), *inspect.signature(xgb.XGBModel.__init__).parameters} - {"self", "kwargs"}
    speed = """n_jobs nthread device fail_on_invalid_gpu_id verbosity max_cached_hist_node debug_synchronize
    sparse_threshold""".split()
    elsewhere = "booster num_class n_estimators specified_updater".split()  # refused by other tests
    left = known - {*TRIALS["xgboost"], *speed, *elsewhere, *REFUSED["xgboost"]}
    assert not left


def test_every_parameter_of_catboost_has_a_place():
    """Those of its ranker and its classifier: an effect, speed only, or refused."""
    catboost = pytest.importorskip("catboost")
    kinds = catboost.CatBoostRanker, catboost.CatBoostClassifier
    known = {name for kind in kinds for name in inspect.signature(kind.__init__).parameters} - {"self"}
    speed = """thread_count task_type devices device_config data_partition gpu_ram_part pinned_memory_size used_ram_limit
    gpu_cat_features_storage logging_level allow_writing_files dev_efb_max_buckets dev_score_calc_obj_block_size
    sparse_features_conflict_fraction""".split()
    assert not known - {*TRIALS["catboost"], *speed, *NUMBER_OF_TREES, *REFUSED["catboost"]}


def leaves_of(config):
    """Names of the values at any depth of a configuration."""
    for name, value in config.items() if isinstance(config, dict) else ():
        yield from leaves_of(value) if isinstance(value, dict) else (name,)


@pytest.mark.parametrize("backend", REFUSED)
def test_parameters_without_an_effect_are_refused(backend):
    pytest.importorskip(backend)
    for name, words in REFUSED[backend].items():
        if name not in NUMBER_OF_TREES:
            with pytest.raises(ValueError, match=f"holds {name}, which would have no effect: {words[:9]}"):
                scores({name: 1}, backend)


def test_the_second_names_are_refused_too():
    with pytest.raises(ValueError, match="holds early_stopping_round, which would have no effect: give patience"):
        scores({"early_stopping_rounds": 5})


@pytest.mark.parametrize("name", sorted(OTHER_NAMES))
def test_a_parameter_of_another_library_is_named_as_it_is_here(name):
    with pytest.raises(TypeError, match=f"parameter {name} is unknown to TreeRanker; here it is ") as found:
        TreeRanker(**{name: 1})
    here = str(found.value).rpartition(" here it is ")[2].partition("=")[0].partition(",")[0]
    assert here in TreeRanker._get_param_names() or here == "placet.set_threads(n)"
    assert name not in TreeRanker._get_param_names()


@pytest.mark.parametrize(
    ("name", "words"), [("leave", "did you mean leaves"), ("zzz", "it has .*subsample; others go into backend_params")]
)
def test_an_unknown_parameter_is_an_error_with_a_way_out(name, words):
    with pytest.raises(TypeError, match=f"parameter {name} is unknown to TreeRanker; {words}"):
        TreeRanker(**{name: 1})


def test_the_signature_is_that_of_the_parameters():
    """Of `__new__`, which names what is unknown, pages and editors would show *args and **params."""
    for kind in (TreeRanker, type("Own", (TreeRanker,), {})):
        assert list(kind.__signature__.parameters) == list(inspect.signature(TreeRanker.__init__).parameters)[1:]
