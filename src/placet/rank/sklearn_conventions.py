"""scikit-learn conventions: hints for arguments of other libraries, and cross-validation without metadata routing."""

import sys
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from placet.data.errors import as_choices

VALID = "give valid=(X, y, qid or sizes of queries) or valid=Queries: what is best on it by the ranker's metric is kept"
INSTEAD = {
    "groups": "give qid=, the query of every row; groups= belongs to the search or splitter that calls the ranker",
    "query_id": "give qid=, the query of every row",
    "group_id": "give qid=, the query of every row",
    "sample_weight": "give weight=, one for each query, or one for each row (equal inside a query, but for trees)",
    "group_weight": "give weight=, one for each query, or one for each row (equal inside a query, but for trees)",
    "eval_set": VALID,
    "eval_group": VALID,
    "eval_qid": VALID,
    "validation_data": VALID,
    "eval_metric": "give metric= to the ranker, such as metric='ndcg@10', and valid= to fit",
    "eval_at": "give metric='ndcg@5' to the ranker: the depth is part of the name",
    "early_stopping_rounds": "give patience= to the ranker and valid= to fit",
    "callbacks": "give progress=, a function of (step, steps at most, metric on the validation set or None)",
    "verbose": "give progress=, a function of (step, steps at most, metric on the validation set or None)",
    "init_model": "give start=, a fitted ranker or the path of a saved one: its training is continued",
    "xgb_model": "give start=, a fitted ranker or the path of a saved one: its training is continued",
    "feature_name": "give X as a data frame: the names of its columns are kept",
    "categorical_feature": "give backend_params={'categorical_feature': [columns]} to TreeRanker",
}
"""What to pass to `fit` in place of arguments of LightGBM, XGBoost, CatBoost and scikit-learn."""


def unknown_parameter(kind: Any, given: Iterable[str]) -> str:
    """What is wrong with the first of these parameters that a ranker does not have, and what to give; "" if none."""
    names = kind._get_param_names()
    for name in given:
        if name in names:
            continue
        here, near = kind.other_names.get(name), get_close_matches(name, names, n=1)
        if here or near:
            way_out = f"here it is {here}" if here else f"did you mean {near[0]}?"
        else:
            way_out = f"it has {as_choices(names)}" + "; others go into backend_params" * ("backend_params" in names)
        return f"{name} is unknown to {kind.__name__}; {way_out}"
    return ""


ROUTING = (
    "scikit-learn hands qid to fit but not to score, and would put NaN for every score; call "
    "sklearn.set_config(enable_metadata_routing=True) first, then search.fit(X, y, qid=qid, groups=qid)"
)


def refuse_other_arguments(given: Mapping[str, Any]) -> None:
    """Raise a ``TypeError`` that says what to pass instead of arguments that `fit` does not have."""
    if given:
        name = next(iter(given))
        raise TypeError(f"fit has no argument {name}" + (f": {INSTEAD[name]}" if name in INSTEAD else ""))


def refuse_search_without_routing() -> None:
    """Raise if fitted by a scikit-learn search or cross-validation that will call ``score`` without ``qid``.

    scikit-learn turns an exception in ``score`` into NaN and goes on to choose among NaNs, but it reports when all fits
    fail.  So the error is raised in ``fit``, and only if the calling frame shows that ``score`` follows.
    """
    from sklearn import get_config

    if get_config()["enable_metadata_routing"]:
        return
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_name != "_fit_and_score":
        frame = frame.f_back  # type: ignore[assignment]
    if frame is not None and frame.f_globals.get("__name__", "").startswith("sklearn.") and _asks_score(frame.f_locals):
        raise ValueError(ROUTING)


def _asks_score(local: Mapping[str, Any]) -> bool:
    """Whether one of the scorers is the estimator's own ``score``; a user's function may know the queries."""
    scorer = local.get("scorer")
    scorers = getattr(scorer, "_scorers", {"": scorer})
    return any(type(one).__name__ == "_PassthroughScorer" for one in scorers.values())
