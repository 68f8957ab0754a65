"""Votes and ballots whose voters are hashed, so that everything but the names can be published."""

import hashlib
import hmac
from collections.abc import Hashable
from typing import TypeVar

from placet.data import Comparisons, DataError, Rankings
from placet.data.arrays import with_columns

SHORTEST_SALT = 16
DIGITS = 16

Voted = TypeVar("Voted", bound=Comparisons | Rankings)


def with_hashed_voters(data: Voted, salt: str) -> Voted:
    """The data with each voter's name replaced by the first 16 digits of HMAC-SHA256(salt, name).

    Equal names give equal digits, so results do not change, and whoever knows the salt can find a voter's rows again.
    Without the salt names cannot be guessed and tried, so keep it secret, and take a long random one
    (`secrets.token_hex`).

    >>> votes = Comparisons.from_battles("ab", "ba", ["a", "a"], agent=["ann", "bob"])
    >>> with_hashed_voters(votes, "a salt that nobody else knows").agents
    ('b2e983d67197af9a', '85725bb0d84da6fe')
    """
    if len(salt) < SHORTEST_SALT:
        raise ValueError(
            f"the salt has {len(salt)} characters; at least {SHORTEST_SALT}, such as secrets.token_hex(16)"
        )
    if data.agent is None or data.agents is None:
        raise DataError('the data do not say who voted; read the file with the column of voters, such as agent="user"')
    hashed = tuple(_hash(name, salt) for name in data.agents)
    if len(set(hashed)) < len(hashed):
        raise DataError("two voters have the same hash; take another salt")
    found: Voted = with_columns(data, agents=hashed)
    return found


def _hash(name: Hashable, salt: str) -> str:
    return hmac.new(salt.encode(), str(name).encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()[:DIGITS]
