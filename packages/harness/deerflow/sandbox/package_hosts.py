"""Hosts from which pip and npm install packages in a sandbox, as those programs themselves know them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from urllib.parse import urlsplit

from deerflow.sandbox.interface import Policy, SandboxError, SandboxProvider
from deerflow.sandbox.temporary import temporary_sandbox
from deerflow.security.addresses import normal_host

ASK = """
python3 - <<'END' 2>/dev/null
import os
names = "PIP_INDEX_URL PIP_EXTRA_INDEX_URL UV_DEFAULT_INDEX UV_INDEX_URL UV_INDEX UV_EXTRA_INDEX_URL"
chosen, own = [os.environ.get(name, "") for name in names.split()], []
try:
    from pip._internal.configuration import Configuration
    from pip._internal.models import index
    settings = Configuration(isolated=False)
    settings.load()
    chosen += [value for name, value in settings.items() if name.endswith("index-url")]
    for known in vars(index).values():
        if isinstance(known, index.PackageIndex) and "test" not in known.netloc:
            own += [known.simple_url, "https://" + known.file_storage_domain]
except ImportError:
    pass
print(*" ".join(map(str, chosen)).split() or own, sep="\\n")
END
npm config get registry 2>/dev/null
true
"""
"""Prints addresses: what an operator configured for sandboxes, else what the programs use by themselves."""
OWNER = "packages"
SECONDS = 60

logger = logging.getLogger(__name__)


class PackageHosts:
    """Looked up when first asked for, in a sandbox that no agent has written to."""

    def __init__(self, provider: SandboxProvider, listed: Sequence[str] | None) -> None:
        """
        Args:
            listed: by the operator; None: the programs are asked.
        """
        self._provider = provider
        self._hosts = None if listed is None else tuple(listed)

    async def of(self, policy: Policy) -> tuple[str, ...]:
        """Return the hosts for sandboxes with the environment and tools of ``policy``; empty: installing is not offered."""
        if self._hosts is None:
            try:
                async with temporary_sandbox(self._provider, OWNER, policy) as sandbox:
                    said = (await sandbox.exec(ASK, timeout=SECONDS)).output
            except SandboxError as error:
                logger.info("The hosts of packages could not be looked up: %s", error)
                return ()
            self._hosts = await asyncio.to_thread(hosts_of, said)
        return self._hosts


def hosts_of(text: str) -> tuple[str, ...]:
    """Return the hosts of the addresses in ``text``, once each."""
    found: list[str] = []
    for line in text.split():
        with suppress(ValueError):
            parts = urlsplit(line.partition("=")[2] if line.partition("=")[0].isidentifier() else line)
            if parts.scheme in ("http", "https") and parts.hostname:
                found.append(normal_host(parts.hostname))
    return tuple(dict.fromkeys(found))
