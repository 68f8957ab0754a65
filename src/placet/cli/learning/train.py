"""``placet train``: a ranker from files of graded rows."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from placet.cli.common.console_output import deliver, progress_bar, say
from placet.cli.common.feature_rows import (
    NO_READER,
    READERS,
    cases_reader,
    check_control,
    files_of,
    read_subtopics,
    read_table_to_train,
    rows_reader,
    texts_reader,
)
from placet.cli.common.options import (
    METHOD,
    MODEL,
    OF_VOTES,
    OUTPUT,
    AsJson,
    Relations,
    SeedOption,
    check_ranker,
    check_reading,
    check_target,
    complete_losses,
    complete_rankers,
    in_group,
    reads,
)
from placet.cli.common.parts_option import InParts, OnDask, open_parts

if TYPE_CHECKING:
    from placet.data import Queries

CONTROL_HELP = (
    'A column of a table that may have moved the grades, such as the place at which a row was shown: "position", '
    '"one-hot(position)", "shown - seen"; its effect is fitted beside the features and left out of the scores; may be '
    "repeated."
)

AUTO_METRIC = "ndcg@10"
"""What --ranker auto chooses by if no metric is named."""


@reads(*OF_VOTES)
def train(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="TRAIN",
            help="Graded rows with features: LETOR / svmlight, CSV, Parquet; labels: extreme classification, or a "
            "table with --text and --labels; fusion: LETOR-agg.",
        ),
    ],
    save: Annotated[
        Path,
        in_group("File to write the model to.", OUTPUT, "", "--out", "-o", "--save", callback=check_target),
    ],
    valid: Annotated[Path | None, in_group("Validation rows: the best state on them is kept.", "Validation")] = None,
    ranker: Annotated[
        str,
        in_group(
            "linear, trees, forest, neural, booster, rankboost, adarank, coordinate, surrogate, structrank, "
            "listwise, reranker, crf, diversity (--judged), fusion (of rank lists), labels (extreme multi-label), or "
            "auto: the best of a short list (--param budget=N, seconds=S), or the mean of the K best (--param "
            "blend=K; folds=F, rotate=true: each of them fitted without one of F parts, in turn).  If not given: "
            "linear, or that of --start.",
            METHOD,
            "NAME",
            autocompletion=complete_rankers,
        ),
    ] = "",
    loss: Annotated[
        str,
        in_group(
            "Any loss of placet.losses.LOSSES; the ranker's own if not given.",
            METHOD,
            "NAME",
            autocompletion=complete_losses,
        ),
    ] = "",
    metrics: Annotated[
        list[str] | None,
        in_group(
            "Metric on the validation rows; the ranker's own if not given.  If repeated, the first decides what is "
            "kept, and --history has all.",
            "Validation",
            "NAME",
            "--metric",
        ),
    ] = None,
    history: Annotated[
        Path | None,
        in_group(
            "Write the metrics after each step: a table (.csv) or a plot (.svg, .png, .pdf).",
            "Validation",
            callback=check_target,
        ),
    ] = None,
    start: Annotated[
        Path | None,
        in_group(
            "Continue the training of this saved model on these rows: further trees, epochs or iterations.  Its "
            "ranker, loss and parameters are kept where no others are given.",
            METHOD,
        ),
    ] = None,
    param: Annotated[
        list[str] | None,
        in_group("A parameter of the ranker.", METHOD, "NAME=VALUE", "--param", "-p"),
    ] = None,
    loss_param: Annotated[
        list[str] | None,
        in_group("A parameter of the loss.", METHOD, "NAME=VALUE", "--loss-param"),
    ] = None,
    features: Annotated[int, in_group("Number of features, where files may omit the last ones.", MODEL)] = 0,
    control: Annotated[list[str] | None, in_group(CONTROL_HELP, MODEL, "COLUMN", "--control")] = None,
    order: Annotated[
        str,
        in_group(
            "Label ranking: rows are cases, with a column of orders (a > b > c) or columns of the labels' ranks.",
            MODEL,
            "COLUMN,...",
        ),
    ] = "",
    text: Annotated[
        str,
        in_group(
            "Labels of texts: the column of texts, which become features (--param text=tfidf or hashing).",
            MODEL,
            "COLUMN",
            "--text",
        ),
    ] = "",
    labels: Annotated[
        str, in_group("Column with the names of the labels of each text, as in billing; refund.", MODEL, "COLUMN")
    ] = "",
    text_param: Annotated[
        list[str] | None,
        in_group("A parameter of scikit-learn's vectorizer, such as ngram_range=1,2.", METHOD, "NAME=VALUE"),
    ] = None,
    relation: Relations = None,
    judged: Annotated[
        Path | None,
        in_group("Of --ranker diversity: TREC qrels with subtopics of the documents (#docid).", MODEL),
    ] = None,
    seed: SeedOption = 0,
    as_json: AsJson = False,
    parts: InParts = False,
    dask: OnDask = "",
    *,
    reading: dict[str, Any],
) -> None:
    """Train a ranker and save it.  Ctrl-C keeps the best model so far."""
    from placet.data.parameters import parse_parameters
    from placet.rank.fitting.training_history import write_history
    from placet.rank.named_ranker import make_ranker
    from placet.rank.ranker import RANKERS

    given = parse_parameters(param or []) | ({"loss_params": parse_parameters(loss_param)} if loss_param else {})
    if text or labels or text_param:
        ranker = _check_text(text, ranker, order, control, relation, judged, features, parts, dask)
        given |= {"text_params": parse_parameters(text_param)} if text_param else {}
    metric, *further = metrics or [""]
    before = _model_before(start, ranker, parts or bool(dask))
    ranker = ranker or ("linear" if before is None else RANKERS.name_of(type(before)) or "")
    _check_history(history, further, valid, ranker, parts or bool(dask))
    kind = "linear" if check_ranker(ranker) == "auto" else ranker
    read_rows: Any
    if text:
        read_rows = texts_reader(reading | {"text": text} | ({"labels": labels} if labels else {}))
    else:
        read_rows = _reader(kind, relation, judged, reading)
    if order:
        loss, metric = _check_order(order, ranker, loss, metric, control, relation, judged, features, parts, dask)
        read_rows = cases_reader(reading | {"order": order})
    own = {} if before is None else before.get_params(deep=False)
    model = None if ranker == "auto" else make_ranker(ranker, loss, metric, given, seed, own)
    if model is not None:
        model.check_names()
    if control:
        check_control(
            ranker,
            control,
            file,
            *(("--relation", relation), ("--judged", judged), ("--features", features)),
            *(("--parts", parts), ("--dask", dask)),
        )
    if parts or dask:
        if relation or judged:
            raise ValueError("--relation and --judged go with rows in memory; leave --parts and --dask out")
        if model is None:
            raise ValueError("--ranker auto tries many rankers on rows in memory; leave --parts and --dask out")
        options = reading | ({"n_features": features} if features else {})
        with open_parts([[file], *([[valid]] if valid else [])], "", [options] * 2, dask, ranker) as found:
            about = model.fit(found[0], valid=found[1] if valid else None).fit_summary_
            _deliver_model(model, save, about, found[0].n_lists, as_json, valid, metric)
        return
    fitting: dict[str, Any] = {"start": before} if before is not None else {}
    fitting |= {"metrics": further} if further else {}
    with progress_bar("reading"):
        rows: Any
        held_out: Any
        if control:
            rows, fitting["control"], held_out = read_table_to_train(file, valid, control, reading)
        else:
            rows = read_rows(file, features or None)
            held_out = None if valid is None else read_rows(valid, None if text else _n_features(rows))
    try:
        with showing_progress(metric) as progress:
            if model is None:
                about, model = _choose_ranker(rows, held_out, metric, given, loss, seed, progress)
            else:
                data = rows if isinstance(rows, tuple) else (rows,)
                about = model.fit(*data, valid=held_out, progress=progress, **fitting).fit_summary_
    except ImportError as error:
        raise ValueError(str(error)) from None
    by = metric or (AUTO_METRIC if ranker == "auto" else "")
    _deliver_model(model, save, about, _n_queries(rows), as_json, valid, by)
    if history is not None:
        write_history(model.history_, history)


def _model_before(start: Path | None, ranker: str, in_parts: bool) -> Any:
    """The saved model whose training is continued, or None."""
    from placet.rank import load
    from placet.rank.ranker import RANKERS

    if start is None:
        return None
    before = load(start)
    name = RANKERS.name_of(type(before))
    if ranker and ranker != name:
        raise ValueError(f"--start {start} is a model of --ranker {name}; leave --ranker {ranker} out")
    if in_parts:
        raise ValueError(f"--start {start} goes on with rows in memory; leave --parts and --dask out")
    return before


def _check_history(history: Path | None, metrics: list[str], valid: Path | None, ranker: str, in_parts: bool) -> None:
    """Raise a ``ValueError`` if metrics after each step are asked for that this training does not compute."""
    from placet.rank.fitting.training_history import check_suffix
    from placet.rank.ranker import RANKERS, ranker_class

    if history is None and not metrics:
        return
    asked = f"--history {history}" if history is not None else f"--metric {metrics[0]}"
    if history is not None:
        check_suffix(history)
    if ranker == "auto" or not ranker_class(ranker).records_metrics:
        able = [name for name in RANKERS if ranker_class(name).records_metrics]
        raise ValueError(f"{asked}: --ranker {ranker} records no metrics by step; these do: {', '.join(able)}")
    if (valid is None and ranker_class(ranker).learns_from != "labels") or in_parts:
        raise ValueError(f"{asked}: metrics after each step are those of validation rows in memory; give --valid")


def _check_text(text: str, ranker: str, *others: Any) -> str:
    """The ranker of texts with labels, "labels", if that is possible with the other options."""
    if not text:
        raise ValueError("--labels and --text-param are for texts; name their column with --text, or leave them out")
    if any(others) or ranker not in ("", "labels"):
        raise ValueError(
            f"--text {text}: rows are texts with labels, which --ranker labels learns from; leave out --ranker "
            f"{ranker}, --order, --control, --relation, --judged, --features, --parts and --dask"
        )
    return "labels"


def _check_order(order: str, ranker: str, loss: str, metric: str, *others: Any) -> tuple[str, str]:
    """The loss and the metric of a label ranking: those given, else Plackett-Luce and Kendall's tau."""
    from placet.rank.ranker import ranker_class

    if any(others) or (ranker != "auto" and ranker_class(ranker).learns_from != "queries"):
        raise ValueError(
            f"--order {order}: rows are cases in memory, which --ranker linear, trees, ... learn from; leave out "
            "--control, --relation, --judged, --features, --parts and --dask"
        )
    own = ranker != "auto" and "loss" in ranker_class(ranker)().get_params(deep=False)
    return loss or ("pl-partition" if own else ""), metric or "kendall_tau"


def _deliver_model(
    model: Any, save: Path, about: dict[str, Any], n_queries: int, as_json: bool, valid: Path | None, metric: str
) -> None:
    """Save a fitted ranker; report what it is, how good on the validation rows, and what to type next."""
    from placet.io.surveys.label_orders import case_columns

    model.save(save)
    if about.get("interrupted"):
        say(f"interrupted: {save} holds the best model so far")
    one = getattr(model, "loss", None)  # a blend has none: each member has its own
    summary = {"model": str(save), "ranker": type(model).__name__, "loss": one, "queries": n_queries, **about}
    present = {key: value for key, value in summary.items() if value is not None}
    effects = getattr(model, "controls_", {})
    rows = [
        *((key, value) for key, value in present.items() if key != "history"),
        *((f"effect of {name}", effect) for name, effect in effects.items()),
    ]
    deliver(None, as_json, ["what", "value"], rows, present | ({"controls": effects} if effects else {}))
    quality = about.get("validation")
    if quality is not None:
        where = "rows that were held out" if valid is None else valid
        say(f"{metric or getattr(model, 'metric', None) or 'validation'} on {where}: {quality:.4f}")
    elif valid is None:
        say("no --valid was given, so how well the model ranks other rows is not known")
    if case_columns(getattr(model, "features_", None)) is not None:
        say(f"next: placet score {save} FILE, which gives an order of the labels for each case")
    elif getattr(model, "text_", None) is not None:
        say(f"next: placet score {save} FILE -k 3, which gives the best labels of each text")
    else:
        say(f"next: placet score {save} FILE --out scores.txt, then placet evaluate scores.txt FILE")


def _reader(
    name: str, relation: list[str] | None, judged: Path | None, options: Mapping[str, Any]
) -> Callable[[Path, int | None], Any]:
    from placet.rank.ranker import ranker_class

    learns_from, relations = ranker_class(name).learns_from, files_of(relation)
    if judged is not None and learns_from != "subtopics":
        raise ValueError(f"--judged {judged} is for --ranker diversity; {name} learns from {learns_from}")
    if learns_from == "subtopics" and judged is not None:
        check_reading(options, ["letor"], f"a ranker of {learns_from}")
        return partial(read_subtopics, relations=relations, judged=judged, options=options)
    if learns_from not in READERS:
        raise ValueError(f"--ranker {name} needs {NO_READER[learns_from]}")
    return rows_reader(learns_from, relations, options)


def _n_features(rows: Any) -> int:
    return int((rows[0] if isinstance(rows, tuple) else rows).X.shape[1])


def _n_queries(rows: Any) -> int:
    return len(rows[0] if isinstance(rows, tuple) else rows)


def _choose_ranker(
    rows: "Queries", valid: "Queries | None", metric: str, given: dict[str, Any], loss: str, seed: int, progress: Any
) -> tuple[dict[str, Any], Any]:
    """Select the best of a short list of rankers; also return what was tried."""
    from placet.data.parameters import check_parameters
    from placet.rank.search.autorank import autorank

    own = ("budget", "seconds", "blend", "stack", "folds", "rotate", "distill")
    if loss or set(given) - set(own):
        raise ValueError(
            f"--ranker auto chooses loss and parameters itself; with --param it takes only {', '.join(own)}"
        )
    check_parameters(autorank, given, "--ranker auto")
    choice = autorank(rows, valid, metric=metric or AUTO_METRIC, random_state=seed, progress=progress, **given)
    say(repr(choice))
    about = {"validation": choice.value, "tried": len(choice.trials), "interrupted": choice.interrupted}
    return about, choice.ranker


@contextmanager
def showing_progress(metric: str) -> Iterator[Callable[[int, int, float | None], None] | None]:
    """A callback that draws a bar with the current metric on stderr; None if stderr is not a terminal."""
    with progress_bar("training", after=0.0) as update:

        def advance(step: int, steps: int, value: float | None) -> None:
            if update is not None:
                update(step, steps, None if value is None else f"{metric or 'validation'} {value:.4f}")

        yield None if update is None else advance
