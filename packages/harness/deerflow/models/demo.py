"""A scripted chat model that needs no provider, no key and no network, and works with real tools."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import LanguageModelInput
from langchain_core.language_models.chat_models import BaseChatModel, generate_from_stream
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolCall, ToolMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import tool_call, tool_call_chunk
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field

from deerflow.models.messages import is_reminder

SCRIPT: Mapping[str, Any] = yaml.safe_load(Path(__file__).with_name("demo_script.yaml").read_text(encoding="utf-8"))
LABEL: str = SCRIPT["label"]
OUTPUTS = "/mnt/user-data/outputs"
PROGRAM = "demo_analysis.py"
"""What the program is called in the sandbox."""
MAX_REQUEST = 10_000
"""Characters of a request that the script looks at."""
_END_OF_FACTS = re.compile(r"</(system-\w+|uploaded_files|system_reminder|current_date|memory)>")
UPLOAD = re.compile(r"Path:[ \t]*/mnt/user-data/uploads/([^\r\n]+)")
WRITTEN = re.compile(r"^DEMO-FILES (.+)$", re.MULTILINE)


class DemoChatModel(BaseChatModel):
    """Plans, runs a real program in the real sandbox, presents the real report, and says that it is scripted.

    Its answers are a pure function of the messages and the bound tools.
    """

    model: str = "demo"
    chunk_delay: float = Field(default=0.008, ge=0)
    """Seconds between two chunks of a stream."""
    program: str = Field(
        default_factory=lambda: Path(__file__).with_name("demo_program.txt").read_text(encoding="utf-8")
    )
    """The source of the program that it runs in the sandbox."""

    @property
    def _llm_type(self) -> str:
        return LABEL

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model_name": self.model}

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | bool | Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Tools by whose schemas calls are made. ``tool_choice`` does not change the script."""
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return generate_from_stream(self._chunks(messages, kwargs.get("tools") or ()))

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        for chunk in self._chunks(messages, kwargs.get("tools") or ()):
            time.sleep(self.chunk_delay)
            yield chunk

    def _chunks(
        self, messages: Sequence[BaseMessage], tools: Sequence[Mapping[str, Any]]
    ) -> Iterator[ChatGenerationChunk]:
        reply = _DemoTurn(
            messages, {tool["function"]["name"]: tool["function"] for tool in tools}, self.program
        ).reply()
        for piece in re.findall(r"\S+\s*|\s+", reply.text):
            yield ChatGenerationChunk(message=AIMessageChunk(content=piece))
        for index, call in enumerate(reply.tool_calls):
            arguments = json.dumps(call["args"], ensure_ascii=False)
            head = tool_call_chunk(name=call["name"], args="", id=call["id"], index=index)
            pieces = [arguments[at : at + 200] for at in range(0, len(arguments), 200)]
            for chunk in (head, *(tool_call_chunk(args=piece, index=index) for piece in pieces)):
                yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=[chunk]))
        reason = "tool_calls" if reply.tool_calls else "stop"
        # An estimate: nothing is counted or paid.
        sent, received = sum(len(message.text) for message in messages) // 4, len(reply.text) // 4
        last = AIMessageChunk(
            content="",
            response_metadata={"model_name": self.model, "model_provider": "demo", "finish_reason": reason},
            usage_metadata=UsageMetadata(input_tokens=sent, output_tokens=received, total_tokens=sent + received),
            chunk_position="last",
        )
        yield ChatGenerationChunk(message=last)


def _without_facts(request: str) -> str:
    for tag in dict.fromkeys(_END_OF_FACTS.findall(request)):
        closed, end, rest = request.rpartition(f"</{tag}>")  # an opening one behind it has no end to look for
        request = re.sub(rf"<{tag}\b.*?</{tag}>", "", closed + end, flags=re.DOTALL) + rest
    return request.strip()


class _DemoTurn:
    """The part of a conversation that belongs to the current request, and the script's next step in it."""

    def __init__(self, messages: Sequence[BaseMessage], tools: Mapping[str, Mapping[str, Any]], program: str) -> None:
        self.messages, self.tools, self.program = messages, tools, program
        people = [i for i, m in enumerate(messages) if isinstance(m, HumanMessage) and not is_reminder(m)]
        start = people[-1] if people else 0
        request = messages[start].text if people else ""
        # The product puts facts such as uploads before what the person wrote.
        self.request = _without_facts(request[:MAX_REQUEST])
        is_chinese = re.search("[\u4e00-\u9fff]", self.request) and not re.search("[\u3040-\u30ff]", self.request)
        self.script = SCRIPT["zh"] if is_chinese else SCRIPT
        self.steps: Sequence[str] = self.script["steps"]
        self.is_first = not any(isinstance(message, AIMessage) for message in messages[:start])
        earlier = [name for index in people[:-1] for name in _uploads(messages[index])]
        attached = _uploads(messages[start]) if people else []
        self.new_files = [name for name in attached if name not in earlier]
        names = self.new_files or [*attached, *earlier]
        self.files = sorted(dict.fromkeys(names), key=lambda name: name not in self.request)[:3]
        digest = hashlib.sha256("\0".join(f"{m.type}{m.id}{m.text}" for m in messages).encode("utf-8", "replace"))
        self.key = f"{len(messages)}{digest.hexdigest()[:12]}"
        """Part of each call's id, since ids must not repeat within a conversation."""
        answers = {message.tool_call_id: message for message in messages if isinstance(message, ToolMessage)}
        self.results = {
            str(call["id"]).split("-")[1]: answers.get(str(call["id"]))
            for message in messages[start:]
            if isinstance(message, AIMessage)
            for call in message.tool_calls
            if str(call["id"]).startswith("demo-")
        }
        """The answers to the script's calls, by step."""

    def reply(self) -> AIMessage:
        if not self.tools:
            return AIMessage(self._background_answer() or self._talk() or self._say("no_tools"))
        if not self.results and (text := self._talk()):
            return AIMessage(text)
        return self._run()

    def _say(self, name: str, **more: str) -> str:
        """A text of the script."""
        texts, label = self.script["texts"], self.script["label"]
        known = {"label": label, "lower": label.lower(), "connect": texts["connect"], "next": texts["next"]}
        return texts[name].format(**known, **more)

    def _background_answer(self) -> str | None:
        prompt = "\n".join(message.text for message in self.messages if message.type in ("system", "human"))
        for task in SCRIPT["background"]:
            if found := re.search(task["to"], prompt, re.IGNORECASE | re.DOTALL):
                return task["say"].replace("\\1", found[1] or "") if found.re.groups else task["say"]
        return None

    def _talk(self) -> str | None:
        """The answer to a request that does not start a run."""
        if self.new_files:
            return None
        said = (talk["say"] for talk in SCRIPT["talk"] if re.match(talk["to"], self.request, re.IGNORECASE))
        name = next(said, None if self.is_first else "cannot_answer")
        is_wish = len(self.request) <= 60 and re.search(SCRIPT["again"], self.request, re.IGNORECASE)
        return None if name is None or (is_wish and not self.is_first) else self._say(name)

    def _run(self) -> AIMessage:
        subject = self._say("and").join(f"`{name}`" for name in self.files) or self._say("look")
        if not self.results:
            steps = "\n".join(f"{number}. {step}" for number, step in enumerate(self.steps, 1))
            path = f"/mnt/user-data/workspace/{PROGRAM}"
            program = self._call("program", "write_file", "Write the program", path=path, content=self.program)
            if calls := self._todos("plan", 0) + program:
                return AIMessage(f"{self._say('opening')} {subject}:\n\n{steps}\n", tool_calls=calls)
        if "run" not in self.results and (calls := self._run_program()):
            return AIMessage(self._say("now", subject=subject), tool_calls=calls + self._todos("progress", 1))
        output = self._output("run")
        written = WRITTEN.search(output)
        if written is None:
            calls = [] if "stop" in self.results else self._todos("stop", len(self.steps))
            reason = next((line for line in output.splitlines() if line.strip()), "This agent has no working shell.")
            return (
                AIMessage(self._say("stopped"), tool_calls=calls)
                if calls
                else AIMessage(self._say("failed", reason=_escape(reason)))
            )
        paths = [f"{OUTPUTS}/{name}" for name in written[1].split()]
        present = self._call("present", "present_files", "Present the report", filepaths=paths)
        if present and "present" not in self.results:
            return AIMessage(self._say("ready"), tool_calls=present + self._todos("finish", len(self.steps)))
        findings = "\n".join(line for line in output.splitlines() if line.startswith("- "))
        files = "\n".join(f"- `{path}`" for path in paths)
        return AIMessage(self._say("done", findings=findings, files=files, closing=self._say("closing")))

    def _run_program(self) -> list[ToolCall]:
        paths = " ".join(shlex.quote(f"../uploads/{name}") for name in self.files)
        command = f"python3 -W ignore {PROGRAM} ../outputs {paths}".rstrip()
        if not self._output("program").startswith("OK"):
            # Without the file, the program goes into the command.
            command = command.replace(PROGRAM, "-", 1) + f" <<'DEMO_PROGRAM'\n{self.program.rstrip()}\nDEMO_PROGRAM"
        return self._call("run", "bash", "Run the program", command=command)

    def _output(self, step: str) -> str:
        message = self.results.get(step)
        return message.text if message else ""

    def _todos(self, step: str, finished: int) -> list[ToolCall]:
        states = ["completed"] * finished + ["in_progress"] + ["pending"] * len(self.steps)
        todos = [{"content": text, "status": state} for text, state in zip(self.steps, states, strict=False)]
        return self._call(step, "write_todos", "Update the plan", todos=todos)

    def _call(self, step: str, tool: str, description: str, **arguments: Any) -> list[ToolCall]:
        """A call of ``tool`` with the parameters that its schema has; no call if it is not bound."""
        if tool not in self.tools:
            return []
        schema = self.tools[tool].get("parameters") or {}
        known = {"description": description, **arguments}
        wanted = {key: value for key, value in known.items() if key in schema.get("properties", {})}
        for name in schema.get("required", []):
            wanted.setdefault(name, _any_value(schema["properties"][name]))
        return [tool_call(name=tool, args=wanted, id=f"demo-{step}-{self.key}")]


def _any_value(schema: Mapping[str, Any]) -> Any:
    kinds = {"integer": 0, "number": 0, "boolean": False, "array": [], "object": {}}
    return schema.get("default", (schema.get("enum") or [kinds.get(str(schema.get("type")), "demo")])[0])


def _uploads(message: BaseMessage) -> list[str]:
    """The names of the files that came with a message."""
    files = message.additional_kwargs.get("files") or ()
    return UPLOAD.findall(message.text.partition("Uploaded earlier:")[0]) or [file["filename"] for file in files]


def _escape(text: str) -> str:
    return re.sub(r"([\\`*_{}\[\]<>#|!~])", r"\\\1", " ".join(text.split()))[:300]
