"""The reason why a model that no file names is there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class ModelOrigin:
    """``str`` gives a sentence in English; a page words it itself by ``kind``."""

    kind: Literal["connected", "environment", "local", "demo"]
    """Connected on the page, found by a variable, found as a server on this machine, or in place of any model."""
    name: str = ""
    """The variable that is set, or the kind of server."""
    address: str | None = None
    """Of the server, without a password."""

    def __str__(self) -> str:
        at = f", server {self.address}" if self.address else ""
        return {
            "connected": "connected on the page",
            "environment": f"{self.name} is set{at}",
            "local": f"{self.name} at {self.address}",
            "demo": "no model is connected",
        }[self.kind]
