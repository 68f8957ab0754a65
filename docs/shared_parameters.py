"""What parameters are that many functions have in common: written once, for the reference."""

from typing import Any

SHARED = {
    "placet": {
        "random_state": "Seed of everything random.",
        "on_error": 'At a bad line, "raise" an error that names it, or "skip" it and count such lines in a note.',
    },
    "placet.aggregate.rules": {
        "unlisted": 'What ballots say of items they leave out: nothing ("absent"), that these tie for the last places '
        '("last"), or that these get the points of the last place ("zero").',
        "strength": 'Strength of a majority: the votes of the winning side ("winning-votes"), or its lead ("margins").',
        "ties": 'Tied items are eliminated one by one in every possible order ("parallel"), or "together".',
        "time_limit": "Seconds after which the search ends with the best order found and a bound; None for no limit.",
        "k": "The constant that damps the first places.",
        "normalize": 'Scores of a ballot are moved to 0..1 ("min-max"), to the sum 1 ("sum"), or left ("none").',
    },
    "placet.aggregate.scores": {
        "prior": "Standard deviation of the prior of the abilities around their mean; None for no prior.",
        "response": 'What scores are: shares of 1 ("share"), any "number", or "auto": shares if all are in 0..1.',
    },
    "placet.aggregate.sources": {
        "response": 'What scores are: shares of 1 ("share"), any "number", or "auto": shares if all are in 0..1.',
    },
    "placet.losses": {
        "gain": 'Gain of a grade r: "exp2" (2^r - 1), "linear", "log2", or a function of grades.',
        "discount": 'Discount of a place i: "log2" (1 / log2(1 + i)), "letor", "reciprocal", "none", or a function.',
        "beta": "Scale of the entropy: the scores of a list are divided by it.",
        "q": "Exponent of the norm; by default log(rows of the list) + 2.",
        "sigma": "Steepness of the logistic function of a difference of scores.",
        "mu": "Weight of the second kind of pair weights.",
        "temperature": "Softness of places: the lower, the nearer to the true ones.",
        "w1": "First weight of the edges, at which learning begins.",
        "w2": "Second weight of the edges, at which learning begins.",
        "tie": "The tie parameter, at which learning begins.",
    },
    "placet.metrics": {
        "s": "(rows,): scores, higher is better.",
        "grade": "(rows,): grades, higher is better.",
        "offsets": "(lists + 1,): rows ``offsets[q]:offsets[q + 1]`` are list q.",
        "k": "Places that count; None for all.",
        "gain": 'Gain of a grade: "exp2", "linear", "log2", or a function of grades.',
        "discount": 'Discount of a place: "log2", "letor", "reciprocal", "none", or a function of places.',
        "empty": "Value of a list without relevant rows; NaN if not given.",
        "compat": "Conventions of another package, a key of ``metrics.CONVENTIONS``, for parameters left at None.",
        "name": '(rows,): names, which break ties under ``compat="trec_eval"``.',
        "threshold": "The lowest grade that is relevant.",
        "propensity": "(rows,): the chance that a true label of a row is observed.",
        "normalize": 'Divide by the largest possible value: its mean over "all" lists, that of each "list", or "none".',
        "judged": "(rows, subtopics): the judgments of each row for each subtopic.",
        "alpha": "How much a subtopic is worth less with each row above that is relevant to it.",
        "p": "The chance that a reader goes on to the next place, in (0, 1).",
    },
    "placet.rank": {
        "bandwidth": 'Bandwidth of the kernel "gaussian".',
        "max_evaluations": "The most evaluations of the metric in the search for the weights.",
        "metric": "The metric that is reported on the validation set.",
    },
    "placet.io": {
        "items": "Names of all items, in order; by default those in the data.",
        "separator": "What stands between cells, if it cannot be found from the first lines.",
        "sheet": "Sheet of a workbook, by name; needed if several have cells.",
        "format": "Kind of the file (csv, tsv, json, jsonl, parquet), if its suffix does not tell.",
        "max_engines": "The largest number of an engine; beyond it, a line is taken for an error.",
        "dtype": "Type of the features.",
        "subtopics": 'Whether the second column is a subtopic; "auto" finds out.',
        "user": "Column of who rated.",
        "item": "Column of what was rated.",
        "rating": "Column of the ratings.",
        "ballot": "Column of the list.",
        "better": "Column of the preferred item.",
        "worse": "Column of the other item.",
    },
    "placet.axioms": {
        "data": "Ballots, or a family of profiles to search.",
        "method": "A name of ``METHODS``, a function from ballots to scores, or a model.",
        "epsilon": "Majorities count beyond a share of 1/2 + epsilon only.",
    },
    "placet.tracking": {
        "log_likelihood": "The log-likelihood at the estimate.",
        "tracker": "The tracker, with the parameters to begin with.",
        "arrivals": "What the float recorded.",
        "start": "Known first position.",
        "end": "Known last position, or None.",
        "start_sd": "Standard deviation of the first position.",
        "end_sd": "Standard deviation of the last position.",
        "start_day": "Day of the first position; by default one usual step before the first day.",
        "end_day": "Day of the last position.",
        "n_points": "Points of an outline.",
        "points": "(..., 2): points to convert.",
        "truth": "(steps, 2): true positions.",
        "rate": "Mean number of false signals a day.",
        "probability": "P_C = rate / (1 + rate).",
        "parameters": "Names of the parameters to estimate.",
        "n_rounds": "Rounds of the algorithm.",
        "track": "The result of a tracker.",
        "window": "First and last second of listening.",
        "clock": "Seconds by which the float's clock is fast on the first and the last day.",
        "epoch": "Date of day 0.",
        "source": "The file, or the true source of each signal.",
        "target": "The file to write.",
        "beacons": "The beacons.",
    },
    "placet.report": {
        "files": "Names of the files that were read.",
        "command": "The command that was typed.",
        "seed": "The seed.",
        "date": "When it was made (UTC).",
        "period": "First and last day of the data.",
        "path": "The page to write.",
        "consensus": "What is shown.",
        "data": "What it was computed from.",
        "options": "``title``, ``level``, ``origin``, ``about``, ``certificate``: as for `consensus_page`.",
        "found": "The boards of the slices.",
    },
}
"""Home of functions -> parameter -> what it is.  A docstring that says it itself comes first."""


def shared_text(thing: Any, name: str) -> str:
    """What is said of a parameter for all functions of the nearest home."""
    home = str(getattr(thing, "__module__", ""))
    while home:
        if name in SHARED.get(home, {}):
            return SHARED[home][name]
        home = home.rpartition(".")[0]
    return ""
