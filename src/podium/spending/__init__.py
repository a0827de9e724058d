"""Money: what a question may spend, what it has reserved for calls in flight, and what was paid.

A `Ledger` is the account of one question. Before a call, it reserves the most that the call may take, and afterwards it
settles what the call really took, in the question's own limit and in each `SpendLimit` that questions share: of a run,
of a day, of a key. Nothing here knows workers.
"""

from podium.spending.ledger import Ledger, Reservation
from podium.spending.spend_limit import SpendLimit

__all__ = ["Ledger", "Reservation", "SpendLimit"]
