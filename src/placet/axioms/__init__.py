"""Social choice: which axioms a rule keeps, which it breaks, how badly, and on which ballots.

``AXIOMS`` holds the axioms as searches for a ``Witness``; ``search`` and ``verdicts`` try them on all small profiles or
decide them by theorem; ``margins`` and ``worst_case`` say how badly positional rules can fail; ``audit`` looks at your
ballots; ``tell`` puts a witness into words.
"""

from placet.axioms.agreement import Agreement, Contested, agreement
from placet.axioms.checks import AXIOMS, RELAXED, Witness
from placet.axioms.findings import Duel, Finding
from placet.axioms.on_ballots import Audit, audit
from placet.axioms.outcome import Rule, majority_relation, positional_rule, rule_of
from placet.axioms.positional import Margins, cycle, margins, table_4_1, table_4_2, tie_on_the_way
from placet.axioms.profiles import Domain, Profile
from placet.axioms.search import Verdict, search, verdicts
from placet.axioms.sensitivity import Sensitivity
from placet.axioms.words import MEANING, profile_words, tell
from placet.axioms.worst_case import WorstCase, worst_case

__all__ = [
    "AXIOMS",
    "MEANING",
    "RELAXED",
    "Agreement",
    "Audit",
    "Contested",
    "Domain",
    "Duel",
    "Finding",
    "Margins",
    "Profile",
    "Rule",
    "Sensitivity",
    "Verdict",
    "Witness",
    "WorstCase",
    "agreement",
    "audit",
    "cycle",
    "majority_relation",
    "margins",
    "positional_rule",
    "profile_words",
    "rule_of",
    "search",
    "table_4_1",
    "table_4_2",
    "tell",
    "tie_on_the_way",
    "verdicts",
    "worst_case",
]
