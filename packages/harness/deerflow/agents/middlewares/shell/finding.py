"""What there is to say about a command."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Verdict(IntEnum):
    PASS = 0
    WARN = 1
    BLOCK = 2


@dataclass(frozen=True, slots=True)
class Finding:
    """Why a command is not simply passed."""

    verdict: Verdict
    rule: str
    reason: str


def block(rule: str, reason: str) -> Finding:
    return Finding(Verdict.BLOCK, rule, reason)


def warn(rule: str, reason: str) -> Finding:
    return Finding(Verdict.WARN, rule, reason)
