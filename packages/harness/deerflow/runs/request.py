"""What a client asks for when it starts a run: the create body of the LangGraph API."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from deerflow.config.agents import AgentConfig
from deerflow.context.run_options import RunOptions, run_options
from deerflow.errors import InvalidRequestError
from deerflow.events.streams.langgraph_sse import STREAM_MODES
from deerflow.identity import Principal, check_id
from deerflow.storage.runs import MultitaskStrategy, Run
from deerflow.tracing import TRACEPARENT

RECURSION_LIMIT = 1000

Hooks = list[str] | Literal["*"]


class CheckRequest(BaseModel):
    """A command of the sandbox that must exit with 0, a file that must exist, or a JSON schema of the answer."""

    model_config = ConfigDict(extra="forbid")

    command: str | None = Field(default=None, max_length=10_000)
    file_exists: str | None = Field(default=None, max_length=4096)
    answer_schema: dict[str, Any] | None = Field(default=None, description="The answer must be JSON of this schema.")
    timeout: float = Field(default=600, gt=0, le=3600, description="Seconds that the command may take.")

    @model_validator(mode="after")
    def _one_kind(self) -> CheckRequest:
        if [bool(self.command), bool(self.file_exists), self.answer_schema is not None].count(True) != 1:
            raise ValueError("A check has either a command, file_exists or answer_schema.")
        return self


class SendRequest(BaseModel):
    """A jump to a node, with an input of its own."""

    model_config = ConfigDict(extra="forbid")

    node: str
    input: Any = None


class CommandRequest(BaseModel):
    """LangGraph's ``Command``: an answer to an interrupt, an update of the state, a jump."""

    model_config = ConfigDict(extra="forbid")

    resume: Any = None
    update: dict[str, Any] | list[tuple[str, Any]] | None = None
    goto: str | SendRequest | list[str | SendRequest] | None = None

    def changes(self) -> dict[str, Any]:
        """``update`` as a mapping."""
        return dict(self.update or {})


class CheckpointRequest(BaseModel):
    model_config = ConfigDict(extra="ignore")

    thread_id: str | None = None
    checkpoint_ns: str = ""
    checkpoint_id: str | None = None
    checkpoint_map: dict[str, Any] | None = None


class RunRequest(BaseModel):
    """A run to be. Keys that are not listed here are refused."""

    model_config = ConfigDict(extra="forbid")

    assistant_id: str = "lead_agent"
    input: dict[str, Any] | list[Any] | str | None = None
    command: CommandRequest | None = None
    config: dict[str, Any] | None = None
    context: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    stream_mode: str | list[str] | None = None
    stream_subgraphs: bool = False
    stream_resumable: bool = True
    interrupt_before: Hooks | None = None
    interrupt_after: Hooks | None = None
    feedback_keys: Any = Field(default=None, exclude=True, description="Without effect.")
    langsmith_tracer: Any = Field(default=None, exclude=True, description="Without effect.")
    langsmith_tracing: Any = Field(default=None, exclude=True, description="Without effect.")
    raise_error: Any = Field(default=None, exclude=True, description="Without effect: clients raise errors themselves.")
    webhook: str | None = None
    checkpoint: CheckpointRequest | None = None
    checkpoint_id: str | None = None
    checkpoint_during: bool | None = None
    durability: Literal["sync", "async", "exit"] | None = None
    multitask_strategy: MultitaskStrategy = MultitaskStrategy.ENQUEUE
    if_not_exists: Literal["create", "reject"] | None = None
    on_disconnect: Literal["cancel", "continue"] = "continue"
    on_completion: Literal["delete", "keep"] | None = None
    after_seconds: float | None = Field(default=None, ge=0, le=366 * 86400)
    strict_resume: bool | None = None
    traceparent: str | None = Field(
        default=None, max_length=200, description="The caller's span: the run joins its trace. The header counts, too."
    )
    checks: list[CheckRequest] = Field(
        default_factory=list, max_length=20, description="What must hold at the end; if it does not, the agent goes on."
    )
    check_rounds: int = Field(default=2, ge=0, le=10, description="How often failed checks go back to the agent.")

    @field_validator("stream_mode", mode="after")
    @classmethod
    def _known_modes(cls, value: str | list[str] | None) -> str | list[str] | None:
        for mode in [value] if isinstance(value, str) else value or []:
            if mode not in STREAM_MODES:
                raise ValueError(f"{mode!r} is not a stream mode. Known: {', '.join(STREAM_MODES)}.")
        return value

    @field_validator("config", mode="after")
    @classmethod
    def _usable_config(cls, value: dict[str, Any] | None) -> dict[str, Any] | None:
        limit, tags = (value or {}).get("recursion_limit"), (value or {}).get("tags")
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= 100_000):
            raise ValueError("recursion_limit must be a whole number from 1 to 100000.")
        if tags is not None and not (isinstance(tags, list) and all(isinstance(tag, str) for tag in tags)):
            raise ValueError("tags must be a list of texts.")
        return value

    @field_validator("strict_resume", mode="after")
    @classmethod
    def _no_strict_resume(cls, value: bool | None) -> bool | None:
        if value:
            raise ValueError("strict_resume is not supported: look at the thread's interrupts before you resume.")
        return value

    @field_validator("checkpoint", mode="after")
    @classmethod
    def _root_checkpoint(cls, value: CheckpointRequest | None) -> CheckpointRequest | None:
        if value is not None and value.checkpoint_ns:
            raise ValueError("checkpoint_ns: runs begin at checkpoints of the graph itself, not of a subgraph.")
        return value

    @field_validator("traceparent", mode="after")
    @classmethod
    def _valid_traceparent(cls, value: str | None) -> str | None:
        """One that is not valid is none, as the W3C wants it."""
        return value if value and TRACEPARENT.fullmatch(value) else None

    @model_validator(mode="after")
    def _one_input(self) -> RunRequest:
        if self.command is not None:
            if self.input:
                raise ValueError("Give either input or command, not both.")
            self.input = None  # chat interfaces send an empty one along
        return self

    @property
    def modes(self) -> list[str]:
        """The stream modes asked for; ``values`` if none was named."""
        if self.stream_mode is None:
            return ["values"]
        return [self.stream_mode] if isinstance(self.stream_mode, str) else list(self.stream_mode) or ["values"]

    @property
    def fork_from(self) -> str | None:
        """The checkpoint to go on from, if not the newest."""
        return self.checkpoint_id or (self.checkpoint.checkpoint_id if self.checkpoint else None)

    @property
    def saves(self) -> Literal["sync", "async", "exit"]:
        """When a step is stored: before the next one begins, or a crash would leave tool calls whose effect is unknown."""
        if self.durability is not None:
            return self.durability
        return "exit" if self.checkpoint_during is False else "sync"

    def configurable(self) -> dict[str, Any]:
        """``config.configurable`` and ``context``, the latter on top; ids in them are checked by :meth:`check_ids`."""
        return {**((self.config or {}).get("configurable") or {}), **(self.context or {})}

    @property
    def time_zone(self) -> str | None:
        """The person's, by its IANA name: their date is not the server's."""
        name = self.configurable().get("time_zone")
        return name if isinstance(name, str) and name else None

    def recursion_limit(self) -> int:
        return int((self.config or {}).get("recursion_limit") or RECURSION_LIMIT)

    def tags(self) -> list[str]:
        return [str(tag) for tag in (self.config or {}).get("tags") or ()]


@dataclass(frozen=True, slots=True)
class RunSpec:
    """A run as it is executed: the request, its assistant's settings merged in, and for whom."""

    request: RunRequest
    principal: Principal
    options: RunOptions
    message_ids: tuple[str, ...] = ()
    """Of the messages of the input, in order; none if the run was recorded by an older version."""

    @property
    def agent(self) -> str:
        """Return the name of the custom agent in lower case; empty: the lead agent."""
        return (self.options.agent_name or "").lower()

    @classmethod
    def of(cls, run: Run) -> RunSpec:
        """That of a recorded run."""
        request, agent = RunRequest.model_validate(run.kwargs["request"]), run.kwargs.get("agent")
        return cls(
            request=request,
            principal=Principal(run.user_id, run.kwargs.get("role", "user"), "internal"),
            options=run_options(request.configurable(), AgentConfig.model_validate(agent) if agent else None),
            message_ids=tuple(run.kwargs.get("message_ids") or ()),
        )


def check_ids(request: RunRequest, thread_id: str | None) -> None:
    """The path names the thread; a body that names another one is refused, not followed.

    Raises:
        InvalidRequestError: ``thread_id`` in the body differs, or the configuration is no mapping.
    """
    for section in (request.config or {}).get("configurable"), (request.config or {}).get("context"):
        if section is not None and not isinstance(section, dict):
            raise InvalidRequestError("config.configurable and config.context must be objects.")
    given = request.configurable().get("thread_id")
    given = given or (request.checkpoint.thread_id if request.checkpoint else None)
    if given is not None and thread_id is not None and given != thread_id:
        raise InvalidRequestError("The thread_id in the body is not that of the path.")
    if thread_id is not None:
        try:
            check_id(thread_id, "thread id")
        except ValueError as error:
            raise InvalidRequestError(str(error)) from error
