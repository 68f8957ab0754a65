"""Verification: compute the answer of a certificate anew and compare.

Where everything that computed it is the same (versions, processor), numbers must be equal to the last digit.  Elsewhere
they must agree to `TOLERANCE`, relative to the largest of their column, and the numbers in notes are not compared.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from placet.aggregate.method_table import method_of
from placet.aggregate.proof.certificate import (
    answer_of,
    check_certificate,
    digest_of_data,
    digest_of_entries,
    environment,
)
from placet.aggregate.result.consensus_set import ConsensusSet
from placet.aggregate.result.result import Consensus
from placet.data import DataError
from placet.io.text import quote

TOLERANCE = 1e-6
"""Largest difference between platforms, relative to the largest number of a column."""

MOST_ROUNDS = 100_000
"""Largest number of rounds of resampling that a certificate may ask for."""

MEASURED = ("score", "stderr", "support")
_NUMBER = re.compile(r"[-+]?[0-9][0-9,]*(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?")


def differences_of(certificate: Mapping[str, Any], data: Any, door: Callable[..., Any]) -> list[str]:
    """What differs between a certificate and the answer to its question, in words; empty if nothing does.

    A ``DataError`` if the data are not those of the certificate, so that nothing can be told.
    """
    check_certificate(certificate, "certificate")
    found = []
    if certificate["digest"] != digest_of_entries(certificate):
        found.append("the certificate was changed after it was made: its digest is not that of its entries")
    if digest_of_data(data) != certificate["data"]["sha256"]:
        raise DataError("these are other data than those of the certificate: their digest differs")
    question, answer = certificate["question"], certificate["answer"]
    again = answer_of(_ask(question, data, door), question["level"], question["fragility"])
    exact = environment() == certificate["made_with"]
    return found + _answer_differences(answer, again, exact)


def platform_words(certificate: Mapping[str, Any]) -> str:
    """Whether numbers are compared to the last digit, or why only to the tolerance."""
    here = environment()
    there = certificate["made_with"]
    other = [
        f"{name} {there.get(name)} there, {value} here" for name, value in here.items() if there.get(name) != value
    ]
    if not other:
        return "same versions and processor: compared to the last digit"
    return f"{'; '.join(other)}: compared to {TOLERANCE:g} of the largest number of a column"


def _ask(question: Mapping[str, Any], data: Any, door: Callable[..., Any]) -> Consensus | ConsensusSet:
    """The answer to the question of a certificate, whose method and parameters are checked as a user's are."""
    method, params = question["method"], dict(question["params"])
    if not 0 < question["level"] < 1:
        raise DataError(f"the certificate has level {question['level']}; a level is between 0 and 1")
    reserved = {"progress", "start", "engine", "bootstrap", "random_state"} & set(params)
    if reserved:
        raise DataError(f"the certificate has the parameter {min(reserved)!r}, which is not one of a method")
    if method is not None:
        method_of(method).check(params)
    if question["bootstrap"] > MOST_ROUNDS:
        raise DataError(f"the certificate has {question['bootstrap']:,} rounds of resampling; at most {MOST_ROUNDS:,}")
    given = {"bootstrap": question["bootstrap"], "random_state": question["random_state"]}
    try:
        result: Consensus | ConsensusSet = door(data, method, **given, **params)
    except (TypeError, KeyError, AttributeError, OverflowError) as error:  # values that no user could have given
        raise DataError(f"the question of the certificate cannot be answered: {quote(error, 120)}") from None
    return result


def _answer_differences(there: Mapping[str, Any], here: Mapping[str, Any], exact: bool) -> list[str]:
    found = []
    if there["method"] != here["method"]:
        found.append(f"method: {there['method']} in the certificate, {here['method']} computed")
    names = list(here["columns"])
    if set(names) != set(there["columns"]):
        odd = sorted(set(names) ^ set(there["columns"]))
        return [*found, f"columns: {quote(odd[0])} is in one of the two tables only"]
    lengths = {len(column) for table in (there, here) for column in table["columns"].values()}
    if len(lengths) > 1:
        return [*found, f"rows: the tables have different lengths, {sorted(lengths)}"]
    rows = here["columns"]["item"]
    for name in names:
        found += _column_differences(name, rows, there["columns"][name], here["columns"][name], exact)
    found += _note_differences(there["notes"], here["notes"], exact)
    return found + _fragility_differences(there["fragility"], here["fragility"], exact)


def _column_differences(name: str, rows: list[Any], there: list[Any], here: list[Any], exact: bool) -> list[str]:
    """One sentence for a column: how many cells differ, the first of them, and by how much."""
    if exact or name not in MEASURED:
        odd = [k for k, (x, y) in enumerate(zip(there, here)) if x != y or type(x) is not type(y)]
    else:
        top = max((abs(y) for y in here if isinstance(y, float | int)), default=0.0)
        odd = [k for k, (x, y) in enumerate(zip(there, here)) if not _near(x, y, TOLERANCE * top)]
    if not odd:
        return []
    k = odd[0]
    x, y = there[k], here[k]
    numbers = isinstance(x, int | float) and isinstance(y, int | float)
    by = f", a difference of {abs(x - y):.3g}" if numbers else ""
    more = f" ({len(odd)} of {len(rows)} rows)" if len(odd) > 1 else ""
    return [f"{name} of {quote(rows[k])}: {x} in the certificate, {y} computed{by}{more}"]


def _near(x: Any, y: Any, most: float) -> bool:
    if x is None or y is None:
        return x is y
    return isinstance(x, int | float) and isinstance(y, int | float) and abs(x - y) <= most


def _note_differences(there: list[str], here: list[str], exact: bool) -> list[str]:
    plain = (lambda notes: notes) if exact else (lambda notes: [_NUMBER.sub("#", note) for note in notes])
    if plain(there) == plain(here):
        return []
    odd = [note for note in there if note not in here] or [note for note in here if note not in there] or there
    return [f"notes differ, first: {quote(odd[0], 120)}"]


def _fragility_differences(there: Any, here: Any, exact: bool) -> list[str]:
    """Elsewhere, another set of as many votes may come first; the counts must be equal."""
    if there == here:
        return []
    if there is not None and here is not None and not exact:
        counts = [[(claim.get("claim"), claim.get("count")) for claim in _claims(one)] for one in (there, here)]
        if counts[0] == counts[1]:
            return []
    return ["fragility: the votes that decide the first place are others than those in the certificate"]


def _claims(fragility: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The claims of an entry that may be anything."""
    claims = fragility.get("claims")
    return [one for one in claims if isinstance(one, dict)] if isinstance(claims, list) else []
