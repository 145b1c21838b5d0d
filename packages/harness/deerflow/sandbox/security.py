"""Whether commands of the agent would run on the host itself."""

from __future__ import annotations

from typing import Any

LOCAL_PROVIDERS = (
    "deerflow.sandbox.local:LocalSandboxProvider",
    "deerflow.sandbox.local.local_sandbox_provider:LocalSandboxProvider",
)


def uses_local_sandbox_provider(config: Any = None) -> bool:
    """Whether ``sandbox.use`` names the provider without isolation.

    Args:
        config: an ``AppConfig``; by default the one that is loaded.
    """
    use = getattr(_sandbox_section(config), "use", "") or ""
    return use in LOCAL_PROVIDERS or ("deerflow.sandbox.local" in use and use.endswith(":LocalSandboxProvider"))


def is_host_bash_allowed(config: Any = None) -> bool:
    """Whether the bash tool may be offered: always with an isolating provider, else if ``allow_host_bash`` is set."""
    section = _sandbox_section(config)
    if section is None:
        return False
    return not uses_local_sandbox_provider(config) or bool(getattr(section, "allow_host_bash", False))


def _sandbox_section(config: Any) -> Any:
    if config is None:
        from deerflow.config import get_app_config

        config = get_app_config()
    return getattr(config, "sandbox", None)
