"""How runs are executed, and how long what they leave is kept: ``runs`` and ``retention``."""

from __future__ import annotations

from pydantic import Field

from deerflow.config.section import Section


class RunsConfig(Section):
    """Execution of runs by the gateway and its workers."""

    max_concurrent: int = Field(default=500, ge=1)
    """Runs that one process executes at a time; others wait."""
    timeout_seconds: float = Field(default=6 * 3600.0, gt=0)
    """A run that takes longer is ended with the status timeout."""
    drain_seconds: float = Field(default=20.0, ge=0)
    """How long a process that is told to stop lets its runs go on. What is not finished then goes on in another one."""
    webhook_allow_nets: tuple[str, ...] = ()
    """Networks (CIDR) that webhooks may call though they are not public."""


class RetentionConfig(Section):
    """Days after which things are removed once a day; null: never."""

    threads_days: float | None = Field(default=None, gt=0)
    """Threads that nobody used, with their files."""
    events_days: float | None = Field(default=30, gt=0)
    """What was streamed while runs were on their way. What was said stays with the thread."""
    checkpoints_days: float | None = Field(default=30, gt=0)
    """The way back to earlier turns of threads that nobody used. The thread as it is now stays."""
