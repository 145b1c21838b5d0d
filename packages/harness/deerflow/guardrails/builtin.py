"""Where configurations look for the guardrails that ship."""

from deerflow.guardrails import AllowlistProvider as AllowlistProvider
from deerflow.guardrails import PolicyProvider as PolicyProvider
