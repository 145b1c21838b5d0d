"""The contract suite: attempts to escape from, exhaust or confuse a sandbox, runnable against any provider.

async with open_environment(provider, data_dir) as environment:
    for check in CHECKS:
        if (reason := check.unmet(environment.sandbox.isolation)) is None:
            await check.run(environment)
"""

from __future__ import annotations

from tests.contracts.sandbox import confinement, exhaustion, files, shell

CHECKS = sorted(
    (check for module in (confinement, exhaustion, files, shell) for check in module.checks.all),
    key=lambda check: tuple(map(int, check.id.split("."))),
)
"""Every check, by number."""
