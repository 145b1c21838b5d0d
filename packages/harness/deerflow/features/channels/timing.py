"""Intervals and timeouts of the engine."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds.

    Args:
        lease: how long a process holds a connection without a sign of life; renewed every ``renew``.
        closes: so long before the lease expires, a process that cannot renew it has closed the link.
        look: how often a connection that another process holds is looked at.
        sweep: how often rows are looked for that no one announced.
        first_pause, longest_pause: between tries to reach a platform; each pause is twice the one before.
        displaced_within: three times displaced in this time ends the tries.
        settles: after late messages came, until they are summarised.
    """

    lease: float = 15.0
    renew: float = 5.0
    closes: float = 3.0
    look: float = 2.0
    sweep: float = 5.0
    first_pause: float = 0.3
    longest_pause: float = 30.0
    displaced_within: float = 300.0
    settles: float = 2.0

    @property
    def lease_delta(self) -> timedelta:
        return timedelta(seconds=self.lease)

    def pause(self, tries: int) -> float:
        """Return how long to wait after so many failed tries in a row, with jitter."""
        longest = min(self.longest_pause, self.first_pause * 2 ** min(tries, 30))
        return longest * random.uniform(0.5, 1.0)
