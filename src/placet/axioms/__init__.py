"""Social choice: which axioms a method satisfies, which it violates, how badly, and on which ballots.

``AXIOMS`` holds the axioms as searches for a ``Witness``; ``search`` and ``verdicts`` test them on all small profiles
or decide them by theorem; ``margins`` and ``worst_case`` bound how badly positional rules can fail, and
``loss_worst_case`` does so for rules that minimize an expected loss; ``audit`` examines a method on your ballots;
``explain`` describes a witness in one sentence.
"""

from placet.axioms.audits import Audit, AuditSet, MethodAudit, audit
from placet.axioms.checks import RELAXED
from placet.axioms.election_checks import AXIOMS
from placet.axioms.expected_loss import loss_gap_bounds, loss_worst_case
from placet.axioms.findings import Duel, Finding
from placet.axioms.linear_programs import WorstCase, worst_case
from placet.axioms.outcome import ExaminedMethod, as_method, majority_relation, positional_method
from placet.axioms.positional import Margins, find_tie_between, margins, margins_table, rotations
from placet.axioms.profiles import Domain, Profile
from placet.axioms.rule_agreement import Contested, RuleAgreement, compare_methods
from placet.axioms.sensitivity import Sensitivity
from placet.axioms.sentences import MEANING, explain, format_profile
from placet.axioms.verdict import Verdict, search, verdicts
from placet.axioms.witness import Witness

__all__ = [
    "AXIOMS",
    "MEANING",
    "RELAXED",
    "Audit",
    "AuditSet",
    "Contested",
    "Domain",
    "Duel",
    "ExaminedMethod",
    "Finding",
    "Margins",
    "MethodAudit",
    "Profile",
    "RuleAgreement",
    "Sensitivity",
    "Verdict",
    "Witness",
    "WorstCase",
    "as_method",
    "audit",
    "compare_methods",
    "explain",
    "find_tie_between",
    "format_profile",
    "loss_gap_bounds",
    "loss_worst_case",
    "majority_relation",
    "margins",
    "margins_table",
    "positional_method",
    "rotations",
    "search",
    "verdicts",
    "worst_case",
]
