"""Effects of tools: whether a call brings foreign text, sends what the agent composed, or changes something outside.

Own tools say it in code, others by the annotations of the Model Context Protocol. An operator's word in ``config.yaml`` and a
trusted server are believed. A server that is not trusted brings and sends, and changes unless it says ``readOnlyHint``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.tools import BaseTool

from deerflow.storage.provenance import Source, host_of
from deerflow.tools.decorator import REACHES
from deerflow.tools.origin import DESTINATION, DIGEST, SERVER, TRUSTED


@dataclass(frozen=True, slots=True)
class Effect:
    """Effect of one tool.

    Args:
        brings: its results hold foreign text.
        sends: what the agent composed leaves the thread, to ``server`` or an address.
        changes: it changes something outside of the thread.
        lasts: it changes what outlives the thread: memory, agents, skills, schedules.
        reaches: see :data:`deerflow.tools.decorator.REACHES`.
        server: the server of the Model Context Protocol that it is of.
        host: of the server's address; the server's name if it is a program.
        digest: of the tool's definition; empty for own tools, whose definition is code.
    """

    brings: bool = False
    sends: bool = False
    changes: bool = False
    lasts: bool = False
    reaches: str = ""
    server: str = ""
    host: str = ""
    digest: str = ""

    @property
    def is_inside(self) -> bool:
        """Whether calls stay in the thread."""
        return not (self.brings or self.sends or self.changes or self.lasts)

    def source(self, tool: str, args: Mapping[str, Any]) -> Source | None:
        """Return the source that a call brings text from. None if it brings none, or records its sources itself."""
        if not self.brings or self.reaches == "chats":
            return None
        if self.server:
            return Source("server", self.server, self.digest)
        if self.reaches == "acp":
            return Source("acp", str(args.get("agent") or ""))
        url = args.get("url")
        if self.reaches == "address" and isinstance(url, str):
            return Source("page", url) if not url.startswith(("/", "file:")) else None  # a file of the thread
        return Source("command" if self.reaches == "commands" else "tool", tool)

    def destination(self, args: Mapping[str, Any]) -> str:
        """Return where a call sends something: a host, or a server; empty if it sends nothing."""
        if not self.sends:
            return ""
        if self.reaches == "address":
            return host_of(str(args.get("url") or ""))
        if self.server:
            return self.server if self.host in ("", self.server) else f"{self.server} at {self.host}"
        return self.reaches


UNKNOWN = Effect(brings=True, sends=True, changes=True)
"""Effect of a tool that nothing is known of."""


def effect_of(tool: BaseTool, network: str) -> Effect:
    """Return the effect of a tool.

    Args:
        network: the mode of the sandbox's. Hosts that commands reach through the proxy are its to judge; with ``host`` there is none.
    """
    hint = tool.metadata or {}
    reaches, reads = str(hint.get(REACHES, "")), hint.get("readOnlyHint") is True
    of_server: dict[str, Any] = {
        "server": str(hint.get(SERVER, "")),
        "host": str(hint.get(DESTINATION, "")),
        "digest": str(hint.get(DIGEST, "")),
    }
    if of_server["server"] and not hint.get(TRUSTED):
        return Effect(brings=True, sends=True, changes=not reads, **of_server)
    if reaches == "commands":
        return Effect(brings=network == "host", changes=network == "host", reaches=reaches)
    if hint.get("openWorldHint") is False:
        return Effect(lasts=hint.get("readOnlyHint") is False, **of_server)
    if reads:
        return Effect(brings=True, sends=reaches in ("address", "search"), reaches=reaches, **of_server)
    return Effect(brings=True, sends=True, changes=True, reaches=reaches, **of_server)


def effects_of(tools: Iterable[BaseTool], network: str) -> dict[str, Effect]:
    """Return the effects of tools by name."""
    return {tool.name: effect_of(tool, network) for tool in tools}
