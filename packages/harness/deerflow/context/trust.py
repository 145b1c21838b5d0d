"""The facts by which calls of tools are judged."""

from __future__ import annotations

from dataclasses import dataclass

from deerflow.config.schema import UnattendedConfig
from deerflow.context.approvals import Approvals
from deerflow.storage.provenance import ThreadProvenance


@dataclass(frozen=True, slots=True)
class Trust:
    """The grants of the person, the sources of the thread, and whether there is a person to ask.

    Args:
        provenance: the sources of foreign text in the thread, live.
        unattended: there is no person who could decide about a call.
        can_wait: its owner can be reached later: a schedule of a thread that stays.
    """

    approvals: Approvals | None = None
    provenance: ThreadProvenance | None = None
    unattended: bool = False
    can_wait: bool = False

    def waits(self, policy: UnattendedConfig) -> bool:
        """Return whether the run waits for a person where one has to decide."""
        return not self.unattended or policy.mode == "park" or (policy.mode == "auto" and self.can_wait)
