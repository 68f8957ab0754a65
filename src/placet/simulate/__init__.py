"""Data drawn from every model, seeded: the same ``random_state`` gives the same bytes."""

from placet.simulate.features import queries, ratings
from placet.simulate.orders import mallows, mallows_mixture, plackett_luce
from placet.simulate.partitions import ordered_partitions
from placet.simulate.votes import battles, multinomial_preferences

__all__ = [
    "battles",
    "mallows",
    "mallows_mixture",
    "multinomial_preferences",
    "ordered_partitions",
    "plackett_luce",
    "queries",
    "ratings",
]
