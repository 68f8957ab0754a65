"""``placet verify model.placet train.letor``: train a saved ranker anew, and say what differs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from placet.cli.common.console_output import progress_bar, say
from placet.cli.common.feature_rows import NO_READER, READERS, cases_reader, rows_reader, texts_reader


def verify_model(path: Path, files: Sequence[Path], valid: Path | None, options: Mapping[str, Any]) -> list[str]:
    """What differs between a saved model and the one that its rows give, in words; says how well they agree."""
    from placet.data import DataError
    from placet.io.surveys.label_orders import case_columns
    from placet.rank import load
    from placet.rank.ranker import RANKERS
    from placet.rank.saving.retraining import TOLERANCE, differences_of_rankers, retrained

    if len(files) != 1:
        raise ValueError(
            f"a model was trained on one file, and {len(files)} were given; the rows of --valid come after"
        )
    ranker = load(path)
    if ranker.learns_from not in READERS:
        raise DataError(f"{path}: this model needs {NO_READER[ranker.learns_from]}; placet verify cannot train it")
    if getattr(ranker, "controls_", None):
        raise DataError(f"{path}: the model was trained with --control; placet verify cannot train it anew")
    if ranker.fit_summary_.get("continued"):
        raise DataError(f"{path}: its training continued another model (--start); placet verify cannot train it anew")
    cases = case_columns(ranker.features_) is not None
    if getattr(ranker, "text_", None) is not None:
        read_rows: Any = texts_reader({"text": ranker.text_[1], **options})
    else:
        read_rows = cases_reader(options) if cases else rows_reader(ranker.learns_from, {}, options)
    with progress_bar("reading"):
        rows = read_rows(files[0], ranker.n_features_in_)
        held_out = None if valid is None else read_rows(valid, ranker.n_features_in_)
    with progress_bar("training"):
        again = retrained(ranker, *(rows if isinstance(rows, tuple) else (rows,)), valid=held_out)
    found, same = differences_of_rankers(ranker, again, RANKERS)
    if not found:
        how = (
            "to the last digit"
            if same
            else f"to {TOLERANCE:g} of the largest number of each part, not to the last digit"
        )
        say(f"the same: {files[0].name} gives the {type(ranker).__name__} of {path.name}, {how}")
    elif valid is None:
        say("if the model was trained with validation rows, give them with --valid")
    return found
