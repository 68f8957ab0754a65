"""Engines that grow trees from the gradient and curvature of a loss: Placet, LightGBM, XGBoost and CatBoost."""

import json
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from placet.data import DataError, Queries
from placet.data.arrays import Floats, Ints, is_sparse
from placet.data.engines.memory import return_freed_memory
from placet.lazy import import_optional
from placet.rank.tree_arrays import Forest
from placet.rank.trees.backend_words import refuse_ignored
from placet.rank.trees.symmetric_trees import MOST_LEAVES, Symmetric
from placet.rank.trees.tree_conversion import Tree, forest_of, trees_of_catboost, trees_of_xgboost
from placet.threads import get_threads, is_forked

SMALL_TABLE = 200_000
"""Cells up to which libraries use one thread: a round takes some 10 ms, and more threads mainly wait for each other, on
a busy machine a hundred times as long as they work."""


class Settings(NamedTuple):
    """Settings of all libraries; ``sign`` (features,) holds the ``monotone`` directions, ``own`` is passed on as is."""

    learning_rate: float
    leaves: int
    min_rows: int
    l2: float
    subsample: float
    feature_fraction: float
    random_state: int
    sign: Ints
    own: Mapping[str, Any]


class TreeLibrary(Protocol):
    """Interface of a tree library, constructed from (settings, queries, validation queries or None)."""

    def grow(self, slopes: Any) -> bool:
        """Add a round fitted to the gradient and curvature of ``slopes``; False if no more can be grown."""

    def valid_scores(self) -> Floats:
        """Scores of the validation rows, from all trees so far."""

    def trees(self, n_trees: int) -> Callable[[], Forest]:
        """Copy the trees of the first rounds; calling the result converts the copy to a `Forest`."""


class LightGBM:
    """Leaf-wise trees by LightGBM."""

    def __init__(self, settings: Settings, queries: Queries, valid: Queries | None) -> None:
        lgb = lightgbm()
        params = lightgbm_params(settings, n_threads(queries))
        if params.get("boosting") == "dart" and valid is not None:
            raise ValueError(
                "backend_params holds boosting='dart', which changes earlier trees in every round: the best number of "
                "them cannot be kept; fit without a validation set"
            )
        categories = params.pop("categorical_feature", "auto")  # LightGBM warns of it among the parameters
        train = lgb.Dataset(queries.X, queries.grade, params=params, categorical_feature=categories).construct()
        return_freed_memory()  # the sample from which bins were made may be larger than the bins
        self.n_features, self.booster = queries.n_features, None
        if any(train.feature_num_bin(k) > 1 for k in range(queries.n_features)):  # else LightGBM fails
            self.booster = lgb.Booster(params, train)
            if valid is not None:
                self.booster.add_valid(lgb.Dataset(valid.X, valid.grade, reference=train), "valid")

    def grow(self, slopes: Any) -> bool:
        return self.booster is not None and not self.booster.update(fobj=slopes)

    def valid_scores(self) -> Floats:
        found: list[Floats] = []

        def keep(s: Floats, _: Any) -> tuple[str, float, bool]:
            found.append(s)
            return "kept", 0.0, True

        assert self.booster is not None
        self.booster.eval_valid(feval=keep)
        return found[0]

    def trees(self, n_trees: int) -> Callable[[], Forest]:
        if self.booster is None:
            return partial(Forest.empty, self.n_features)
        return partial(Forest.from_text, self.booster.model_to_string(num_iteration=n_trees or None))


def lightgbm_params(settings: Settings, threads: int = 1) -> dict[str, Any]:
    """The settings as LightGBM parameters."""
    names = lightgbm_names()
    own = {names.get(name, name): value for name, value in settings.own.items()}
    refuse_unknown(own, names or own, "lightgbm")
    refuse_ignored(own, "lightgbm")
    refuse_value(own, "num_class", lambda value: int(value) != 1, "a ranker has one score per row")
    refuse_value(own, "linear_tree", bool, "leaves must hold one value")
    return {
        "objective": "none",
        "metric": "none",
        "learning_rate": settings.learning_rate,
        "num_leaves": settings.leaves,
        "min_data_in_leaf": settings.min_rows,
        "min_sum_hessian_in_leaf": 1e-3,
        "lambda_l2": settings.l2,
        "bagging_fraction": settings.subsample,
        "bagging_freq": int(settings.subsample < 1),
        "feature_fraction": settings.feature_fraction,
        "seed": settings.random_state,
        "deterministic": True,
        "force_row_wise": True,
        "verbosity": -1,
        "num_threads": threads,
        **({"monotone_constraints": settings.sign.tolist()} if settings.sign.any() else {}),
        **own,
    }


@cache
def lightgbm_names() -> dict[str, str]:
    """The main name of every name of a parameter; empty if this version of LightGBM does not list all of them."""
    try:
        aliases = lightgbm().basic._ConfigAliases._get_all_param_aliases()
    except AttributeError:
        return {}
    names = {alias: main for main, others in aliases.items() for alias in (main, *others)}
    return names if "deterministic" in names else {}  # it has one name only


class XGBoost:
    """Leaf-wise trees by XGBoost; ``min_rows`` bounds the curvature of a leaf, which is about 1 per row."""

    def __init__(self, settings: Settings, queries: Queries, valid: Queries | None) -> None:
        self.xgb = package("xgboost")
        self.table, self.n_features = dense(queries.X, "xgboost"), queries.n_features
        own = {XGBOOST_NAMES.get(name, name): value for name, value in settings.own.items()}
        refuse_ignored(own, "xgboost")
        refuse_value(own, "booster", lambda value: value != "gbtree", "only plain sums of trees can be kept")
        refuse_value(own, "num_class", lambda value: int(value) > 1, "a ranker has one score per row")
        params = {
            "num_feature": queries.n_features,
            "tree_method": "hist",
            "grow_policy": "lossguide",
            "max_depth": 0,
            "max_leaves": settings.leaves,
            "min_child_weight": settings.min_rows,
            "eta": settings.learning_rate,
            "lambda": settings.l2,
            "subsample": settings.subsample,
            "colsample_bytree": settings.feature_fraction,
            "seed": settings.random_state,
            "base_score": 0.0,
            "disable_default_eval_metric": True,
            "verbosity": 0,
            "nthread": n_threads(queries),
            **({"monotone_constraints": str(tuple(settings.sign.tolist()))} if settings.sign.any() else {}),
            **own,
        }
        self.train = self.xgb.DMatrix(self.table, queries.grade)
        self.valid = None if valid is None else self.xgb.DMatrix(dense(valid.X, "xgboost"))
        self.booster = self.xgb.Booster(params, [data for data in (self.train, self.valid) if data is not None])
        refuse_unknown(own, {*_keys(json.loads(self.booster.save_config())), "verbosity"}, "xgboost")
        self.rounds = 0

    def grow(self, slopes: Any) -> bool:
        self.booster.update(self.train, self.rounds, fobj=slopes)
        self.rounds += 1
        return True

    def valid_scores(self) -> Floats:
        return np.asarray(self.booster.predict(self.valid, output_margin=True), dtype=np.float64)

    def trees(self, n_trees: int) -> Callable[[], Forest]:
        model = self.booster.save_raw("json")
        found = lambda: trees_of_xgboost(json.loads(model), n_trees)  # noqa: E731
        return lambda: forest_of(found(), self.n_features).with_row_counts(self.table)


XGBOOST_NAMES = {
    "learning_rate": "eta",
    "reg_lambda": "lambda",
    "reg_alpha": "alpha",
    "min_split_loss": "gamma",
    "n_jobs": "nthread",
    "random_state": "seed",
}
"""XGBoost's second names of parameters, and the names used here."""


def _keys(config: Any) -> Iterator[str]:
    """All names at any depth of what was read from JSON."""
    if isinstance(config, Mapping):
        yield from config
    for part in config.values() if isinstance(config, Mapping) else config if isinstance(config, list) else ():
        yield from _keys(part)


class CatBoost:
    """Symmetric trees by CatBoost, each grown as its own model; leaves take a Newton step.

    CatBoost does not pass whole lists to a custom loss, so it fits a tree to the residuals -g / h with weights h; the
    least-squares solution is then the Newton step -sum g / (sum h + l2).  The residuals enter as a baseline, which
    can be changed without quantizing the rows again.
    """

    def __init__(self, settings: Settings, queries: Queries, valid: Queries | None) -> None:
        self.catboost = package("catboost")
        self.own = {CATBOOST_NAMES.get(name, name): value for name, value in settings.own.items()}
        refuse_ignored(self.own, "catboost")
        self.table, self.n_features = dense(queries.X, "catboost"), queries.n_features
        self.settings, self.sign, self.threads = settings, settings.sign, n_threads(queries)
        self.grown: list[list[Tree]] = []  # one per round: a tree, or none if the drawn features have no split
        self.valid_table = None if valid is None else dense(valid.X, "catboost")
        self.s = np.zeros(len(self.table))
        self.on_valid = np.zeros(0 if self.valid_table is None else len(self.valid_table))
        self.label = np.arange(len(self.table)) % 2.0  # CatBoost refuses labels that are all equal
        self.pool = None
        if len(self.table) > 1 and self._varies():
            self.pool = self.catboost.Pool(self.table.astype(np.float32), label=self.label)
            borders = {name: value for name, value in self.own.items() if name in OF_BORDERS}
            self.pool.quantize(**{"border_count": 254, **borders}, task_type="CPU")

    def _varies(self) -> bool:
        rows = self.table.astype(np.float32)
        return bool(((rows != rows[:1]) & ~(np.isnan(rows) & np.isnan(rows[:1]))).any())

    def grow(self, slopes: Any) -> bool:
        if self.pool is None:
            return False
        g, h = slopes.at(self.s)
        self.pool.set_baseline(self.label + g / h)
        self.pool.set_weight(h)
        params = self._params()
        model = self.catboost.CatBoost(params)
        model.fit(self.pool)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "tree.json"
            model.save_model(str(path), format="json")
            found = trees_of_catboost(json.loads(path.read_text()), self.sign)
        self.grown.append(found)
        if not found:  # another draw may find a split
            return bool(params["rsm"] < 1 or params["bootstrap_type"] != "No")
        tree = forest_of(found, self.n_features)
        self.s += tree.predict(self.table)
        if self.valid_table is not None:
            self.on_valid += tree.predict(self.valid_table)
        return True

    def _params(self) -> dict[str, Any]:
        own = self.settings
        drawn = {"bootstrap_type": "Bernoulli", "subsample": own.subsample} if own.subsample < 1 else {}
        if self.own.get("bootstrap_type") in ("Bayesian", "No"):  # which draw no rows
            drawn = {}
        limits = {"monotone_constraints": own.sign.tolist()} if own.sign.any() else {}
        return {
            "loss_function": "RMSE",
            "iterations": 1,
            "learning_rate": own.learning_rate,
            "depth": max(1, min(16, round(np.log2(max(own.leaves, 2))))),
            "l2_leaf_reg": own.l2,
            "rsm": own.feature_fraction,
            "score_function": "L2",
            "leaf_estimation_method": "Newton",
            "leaf_estimation_iterations": 1,
            "random_strength": 0.0,
            "bootstrap_type": "No",
            "boosting_type": "Plain",
            "boost_from_average": False,
            "model_shrink_rate": 0.0,
            "random_seed": own.random_state + len(self.grown),
            "logging_level": "Silent",
            "allow_writing_files": False,
            "thread_count": self.threads,
            **drawn,
            **limits,
            **{name: value for name, value in self.own.items() if name not in OF_BORDERS},
        }

    def valid_scores(self) -> Floats:
        return self.on_valid

    def trees(self, n_trees: int) -> Callable[[], Forest]:
        found = [tree for drawn in self.grown[:n_trees] for tree in drawn]
        return lambda: forest_of(found, self.n_features).with_row_counts(self.table)


CATBOOST_NAMES = {
    "eta": "learning_rate",
    "max_depth": "depth",
    "reg_lambda": "l2_leaf_reg",
    "colsample_bylevel": "rsm",
    "random_state": "random_seed",
    "max_bin": "border_count",
    "num_leaves": "max_leaves",
    "min_child_samples": "min_data_in_leaf",
}
"""CatBoost's second names of parameters, and the names used here."""

OF_BORDERS = ("border_count", "feature_border_type", "per_float_feature_quantization", "nan_mode")
"""Parameters of CatBoost that act when the rows are cut into bins, before the first tree."""


def n_threads(queries: Queries) -> int:
    """The number of threads that grow trees on these rows; the trees do not depend on it."""
    return 1 if is_forked() or queries.X.shape[0] * queries.n_features <= SMALL_TABLE else get_threads()


def refuse_unknown(own: Mapping[str, Any], known: Collection[str], backend: str) -> None:
    """Raise a ``ValueError`` if ``backend_params`` holds a parameter that the library would ignore without a word."""
    for name in own:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            way_out = f"did you mean {near[0]}?" if near else "see its list of parameters"
            raise ValueError(f"backend_params holds {name}, which {NAMES[backend]} does not know; {way_out}")


def refuse_value(own: Mapping[str, Any], name: str, wrong: Callable[[Any], bool], why: str) -> None:
    """Raise a ``ValueError`` if ``backend_params`` holds a value of this parameter that Placet cannot use."""
    if name in own and wrong(own[name]):
        raise ValueError(f"backend_params holds {name}={own[name]!r}, but {why}; leave {name} out")


@contextmanager
def library_errors(backend: str) -> Iterator[None]:
    """Re-raise a library's errors about its parameters as a ``ValueError``."""
    kinds = {
        "lightgbm": lambda: lightgbm().basic.LightGBMError,
        "xgboost": lambda: package("xgboost").core.XGBoostError,
        "catboost": lambda: package("catboost").CatBoostError,
    }
    kind = kinds[backend]() if backend in kinds else ()
    try:
        yield
    except kind as error:
        raise ValueError(f"{NAMES[backend]} cannot grow such trees: {error}") from None


def symmetric(settings: Settings, queries: Queries, valid: Queries | None) -> Symmetric:
    """Placet's own trees, which have no parameters of their own."""
    if settings.own:
        raise ValueError(
            f"backend_params holds {', '.join(settings.own)}, but backend='placet' has no parameters of its own; leave "
            "backend out, or give the library that has them"
        )
    if settings.leaves > MOST_LEAVES:
        raise ValueError(
            f"leaves {settings.leaves} must be at most {MOST_LEAVES} for backend='placet', which halves all leaves of "
            "a level at once; backend='lightgbm' takes more"
        )
    return Symmetric(settings, queries, valid, n_threads(queries))


NAMES = {"lightgbm": "LightGBM", "xgboost": "XGBoost", "catboost": "CatBoost"}

BACKENDS: dict[str, Any] = {"placet": symmetric, "lightgbm": LightGBM, "xgboost": XGBoost, "catboost": CatBoost}
"""Engines by the name of the backend."""


def lightgbm() -> Any:
    """Import LightGBM, or say how to install it."""
    return import_optional("lightgbm", "trees need LightGBM", "pip install 'placet[trees]'")


def package(name: str) -> Any:
    """Import XGBoost or CatBoost, or say how to install it."""
    install = f"pip install {name}, or use backend='lightgbm'"
    return import_optional(name, f"backend={name!r} needs the package {name}", install)


def dense(X: Any, backend: str) -> Floats:
    """Return a dense table as contiguous float64; raise if it is sparse."""
    if is_sparse(X):
        raise DataError(
            f"backend={backend!r} takes what a sparse table does not store for missing, not for 0; use X.toarray(), or "
            "backend='lightgbm'"
        )
    return np.ascontiguousarray(X, dtype=np.float64)
