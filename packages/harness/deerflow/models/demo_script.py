"""The demo model's script: which step comes next. A pure function of the conversation and the tools at hand.

A run takes at most seven replies: each step is taken once per request, whatever comes of it.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import BaseMessage, ToolCall

from deerflow.models import demo_texts as say
from deerflow.models.demo_turn import Turn, read_turn

WORKSPACE = "/mnt/user-data/workspace"
OUTPUTS = "/mnt/user-data/outputs"
SCRIPT_PATH = f"{WORKSPACE}/demo_analysis.py"
REPORT_PATH = f"{OUTPUTS}/demo-report.md"
CHART_PATH = f"{OUTPUTS}/demo-chart.png"

RUN_AGAIN = re.compile(
    r"\b(again|re-?run|repeat|retry|restart|once more|go|go ahead|yes|yep|sure|ok|okay|please do|start|run|demo|"
    r"nochmal|encore|otra vez)\b|再|重新|好的|开始",
    re.IGNORECASE,
)
GREETING = re.compile(
    r"\W*(hi|hello|hey|hallo|moin|bonjour|hola|ciao|test|ping|你好|您好|help|what can you do|who are you)\W*( there| deer ?flow)?\W*",
    re.IGNORECASE,
)

ToolSchemas = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Sources:
    """The programs that the demo model writes into the sandbox."""

    analysis: str
    chart: str


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model says and which tools it calls."""

    text: str
    calls: tuple[ToolCall, ...] = ()


def next_reply(messages: Sequence[BaseMessage], tools: Sequence[Mapping[str, Any]], sources: Sources) -> Reply:
    """The demo model's answer.

    Args:
        messages: the request.
        tools: bound tools in OpenAI's form.
        sources: of the programs it runs.
    """
    turn = read_turn(messages)
    if not tools:
        return Reply(_side_job(messages) or _talk(turn) or say.no_tools())
    return _Run(turn, {tool["function"]["name"]: tool["function"] for tool in tools}, sources).next()


def _talk(turn: Turn) -> str | None:
    """The answer to a request that is not a run; None if it is one."""
    if turn.has_new_files:
        return None
    if turn.is_first:
        return say.greeting() if GREETING.fullmatch(turn.request) else None
    short = len(turn.request) <= 60
    return None if short and RUN_AGAIN.search(turn.request) else say.answer(turn.request, ran_before=turn.ran_before)


class _Run:
    def __init__(self, turn: Turn, tools: ToolSchemas, sources: Sources) -> None:
        self.turn, self.tools, self.sources = turn, tools, sources
        self.names = [path.rsplit("/", 1)[-1] for path in turn.files]
        self.facts = turn.facts

    def next(self) -> Reply:
        # A request that was begun as a run is finished as one.
        if not self.turn.results and (text := _talk(self.turn)):
            return Reply(text)
        steps: tuple[Callable[[], Reply | None], ...] = (
            self._open,
            self._inspect,
            self._draw,
            self._report,
            self._report_by_shell,
            self._present,
            self._give_up,
        )
        return next((reply for step in steps if (reply := step())), None) or Reply(self._end())

    def _open(self) -> Reply | None:
        if self.turn.results:
            return None
        calls = self._todos("plan", 0)
        if "bash" in self.tools:
            what = "Prepare the analysis script"
            calls += self._call("script", "write_file", what, path=SCRIPT_PATH, content=self.sources.analysis)
        if not calls and not (calls := self._look()):
            return None
        return Reply(say.opening(self.names, say.steps(self.names)), calls)

    def _inspect(self) -> Reply | None:
        calls = () if self.turn.done("inspect") else self._look()
        return Reply(say.before_inspection(self.names), calls) if calls else None

    def _look(self) -> tuple[ToolCall, ...]:
        what = "Look at the data" if self.names else "Look at the workspace and the system"
        paths = " ".join(map(shlex.quote, self.turn.files))
        if not self.turn.worked("script"):
            # Without the file, the program itself goes into the command.
            command = f"python3 - {paths} <<'DEMO_PROGRAM'\n{self.sources.analysis.rstrip()}\nDEMO_PROGRAM"
        else:
            command = f"python3 {SCRIPT_PATH} {paths}".rstrip()
        return (
            self._call("inspect", "bash", what, command=command)
            or (self._call("inspect", "read_file", what, path=self.turn.files[0]) if self.turn.files else ())
            or self._call("inspect", "ls", what, path=WORKSPACE)
        )

    def _draw(self) -> Reply | None:
        if self.facts is None or self.turn.done("chart") or not self.facts.get("matplotlib"):
            return None
        pairs, title = say.chart_data(self.facts), say.chart_title(self.facts)
        if not pairs:
            return None
        arguments = shlex.join([title, CHART_PATH, json.dumps(pairs, ensure_ascii=False)])
        command = f"python3 -W ignore - {arguments} <<'DEMO_PROGRAM'\n{self.sources.chart.rstrip()}\nDEMO_PROGRAM"
        calls = self._call("chart", "bash", "Draw a chart", command=command)
        return Reply(say.before_chart(self.facts, title), calls) if calls else None

    def _report(self) -> Reply | None:
        if self.facts is None or self.turn.done("report"):
            return None
        calls = self._call("report", "write_file", "Write the report", path=REPORT_PATH, content=self._report_text())
        return Reply(say.before_report(self.facts), (*calls, *self._todos("progress", 2))) if calls else None

    def _report_by_shell(self) -> Reply | None:
        if self.facts is None or self.turn.worked("report") or self.turn.done("shellreport"):
            return None
        command = (
            f"cat > {REPORT_PATH} <<'DEMO_REPORT'\n{self._report_text()}DEMO_REPORT\necho DEMO-REPORT {REPORT_PATH}"
        )
        calls = self._call("shellreport", "bash", "Write the report", command=command)
        return Reply("I write the report with the shell instead.", calls) if calls else None

    def _present(self) -> Reply | None:
        outputs = self._outputs()
        if not outputs or self.turn.done("present"):
            return None
        calls = self._call("present", "present_files", "Hand over the report", filepaths=outputs)
        return Reply("The report is ready.", (*calls, *self._todos("finish", 4))) if calls else None

    def _give_up(self) -> Reply | None:
        # Open points on a list ask for more work, and there will be none.
        if self._outputs() or not self.turn.done("plan") or self.turn.done("stop"):
            return None
        todos = [{"content": "Say why the demo stops here", "status": "completed"}]
        calls = self._call("stop", "write_todos", "Update the plan", todos=todos)
        return Reply("That did not work as planned.", calls) if calls else None

    def _end(self) -> str:
        if not self.turn.results:
            return say.no_tools()
        inspected = self.turn.results.get("inspect")
        if self.facts is None:
            reason = inspected.text if inspected else "This agent has no tool that can look at files."
            if inspected and not inspected.failed and "bash" not in self.tools:
                reason = "This agent has no shell, and the script needs one to compute anything."
            return say.failure("run the analysis", reason)
        if not self._outputs() and self.turn.done("report"):
            return say.failure("write the report", self.turn.results["report"].text)
        return say.closing(self.facts, self._outputs())

    def _outputs(self) -> list[str]:
        shell = self.turn.results.get("shellreport")
        if not self.turn.worked("report") and not (shell and "DEMO-REPORT" in shell.text):
            return []
        return [REPORT_PATH, *([CHART_PATH] if self._has_chart() else [])]

    def _has_chart(self) -> bool:
        drawn = self.turn.results.get("chart")
        return drawn is not None and f"DEMO-CHART {CHART_PATH}" in drawn.text

    def _report_text(self) -> str:
        chart = CHART_PATH.rsplit("/", 1)[-1] if self._has_chart() else None
        return say.report(self.facts or {}, chart)

    def _todos(self, step: str, finished: int) -> tuple[ToolCall, ...]:
        def status(index: int) -> str:
            return "completed" if index < finished else "in_progress" if index == finished else "pending"

        todos = [{"content": text, "status": status(index)} for index, text in enumerate(say.steps(self.names))]
        if step != "plan" and not self.turn.done("plan"):
            return ()
        return self._call(step, "write_todos", "Update the plan", todos=todos)

    def _call(self, step: str, tool: str, description: str, **wanted: Any) -> tuple[ToolCall, ...]:
        """A call of ``tool`` in the shape that its schema asks for; nothing if it is not bound."""
        if tool not in self.tools:
            return ()
        parameters = self.tools[tool].get("parameters") or {}
        known = parameters.get("properties") or {}
        arguments = {key: value for key, value in {"description": description, **wanted}.items() if key in known}
        for name in parameters.get("required") or []:
            arguments.setdefault(name, _neutral(known.get(name) or {}))
        return (ToolCall(name=tool, args=arguments, id=self.turn.call_id(step), type="tool_call"),)


def _neutral(schema: Mapping[str, Any]) -> Any:
    if "default" in schema:
        return schema["default"]
    if schema.get("enum"):
        return schema["enum"][0]
    kinds = {"integer": 0, "number": 0, "boolean": False, "array": [], "object": {}, "null": None}
    return kinds.get(str(schema.get("type")), "demo")


def _side_job(messages: Sequence[BaseMessage]) -> str | None:
    """Answers to the small jobs that the product gives to a model: title, memory, suggestions, summary."""
    prompt = "\n".join(message.text for message in messages if message.type in ("system", "human"))

    def asks(pattern: str) -> bool:
        return bool(re.search(pattern, prompt, re.IGNORECASE | re.DOTALL))

    if asks(r"newFacts|memory.{0,300}\bjson\b|\bjson\b.{0,300}memory"):
        return '{"user": {}, "history": {}, "newFacts": [], "factsToRemove": []}'
    if asks(r"(follow-?up|suggest).{0,80}questions?"):
        return json.dumps(["Run the demo again", "How do I connect a real model?", "What can you do?"])
    if asks(r"\b(generate|create|write|give|make)\b.{0,60}\btitle\b"):
        named = re.search(r"[\w.-]+\.(csv|tsv|xlsx|json|md|txt|pdf|log|py)\b", prompt, re.IGNORECASE)
        return f"Demo: {named[0]}" if named else "Demo run"
    if asks(r"summari[sz]e.{0,80}(conversation|messages|history|context)|extract.{0,60}context"):
        return "The demo model (scripted) showed how a task runs: it looked at data, wrote a report and presented it."
    return None
