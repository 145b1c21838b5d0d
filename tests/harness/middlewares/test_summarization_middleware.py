"""Against a model that refuses whatever is longer than its window, over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any, cast

import pytest
from bench.replies import HttpError, Reply, Text, ToolCalls
from bench.request_log import Record
from bench.scripted_openai import ScriptedOpenAI
from bench.wire import Envelope
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage, ToolMessage, convert_to_messages
from langchain_core.tools import tool
from tests.support.unpaired_calls import unpaired_calls

from deerflow.agents.middlewares.dangling_tool_call_middleware import DanglingToolCallMiddleware
from deerflow.agents.middlewares.llm_error_handling_middleware import LLMErrorHandlingMiddleware
from deerflow.agents.middlewares.loop_detection_middleware import LoopDetectionMiddleware
from deerflow.agents.middlewares.summarization_middleware import SummarizationMiddleware
from deerflow.agents.middlewares.todo_middleware import TodoMiddleware
from deerflow.agents.middlewares.token_usage_middleware import TokenUsageMiddleware
from deerflow.agents.middlewares.tool_error_handling_middleware import ToolErrorHandlingMiddleware
from deerflow.agents.middlewares.uploads_middleware import SteeringMiddleware, UploadsMiddleware
from deerflow.config import AppConfig
from deerflow.config.schema import ContextSize, SummarizationConfig
from deerflow.models.context_window import ContextWindows, estimate

RULE = "Rule: always sign with the word HERON."
WINDOW = 16_000


class SmallWindow(ScriptedOpenAI):
    """A model whose tokens are three bytes. It asks for one tool call a turn, then answers; a summary says what it is."""

    def __init__(self, window: int = WINDOW) -> None:
        super().__init__()
        self.window = window
        self.refused = 0
        self.summaries: list[Record] = []
        self.failing_summaries = 0
        self.calls_tools = True

    def envelope(self, record: Record) -> Envelope:
        tokens = len(record.raw) // 3
        usage = {"prompt_tokens": tokens, "completion_tokens": 40, "total_tokens": tokens + 40}
        return replace(super().envelope(record), usage=usage)

    def reply_to(self, record: Record) -> Reply:
        if (tokens := len(record.raw) // 3) > self.window:
            self.refused += 1
            text = f"This model's maximum context length is {self.window} tokens. However, your messages resulted in {tokens} tokens."
            return HttpError(400, {"error": {"message": text, "code": "context_length_exceeded"}})
        last = record.body["messages"][-1]
        if "hand-over" in str(last["content"]) or "SUMMARISE" in str(last["content"]):
            self.summaries.append(record)
            if self.failing_summaries:
                self.failing_summaries -= 1
                return HttpError(500)
            return Text(f"## Task and constraints\nHand-over number {len(self.summaries)}.")
        if last["role"] == "user" and self.calls_tools and record.body.get("tools"):
            return ToolCalls(("fetch", {"what": str(last["content"])[-40:]}))
        return super().reply_to(record) if self._queues else Text("Done. HERON")


@pytest.fixture
def endpoint() -> Iterator[SmallWindow]:
    with SmallWindow() as server:
        yield server
    for body in server.requests:
        assert not unpaired_calls(cast("list[AnyMessage]", convert_to_messages(body["messages"])))


@tool
def fetch(what: str) -> str:
    """Fetch a lot."""
    return f"{what}: " + "word " * 200_000


async def no_sleep(seconds: float) -> None:
    return None


@pytest.fixture
def opened(start, context, chat_model):
    """A thread whose model's window the configuration states, or not."""
    windows = ContextWindows()

    def build(window: int | None = WINDOW, summarizer: Any = None, **settings: Any) -> Any:
        entry = {"name": "m", "use": "langchain_openai:ChatOpenAI", "model": "scripted-model", "context_window": window}
        config = AppConfig.model_validate({"models": [entry]})
        chain = [
            UploadsMiddleware(),
            SteeringMiddleware(),
            DanglingToolCallMiddleware(),
            LLMErrorHandlingMiddleware(sleep=no_sleep),
            ToolErrorHandlingMiddleware(),
            SummarizationMiddleware(SummarizationConfig(**settings), windows, model=summarizer),
            TodoMiddleware(),
            TokenUsageMiddleware(),
            LoopDetectionMiddleware(),
        ]
        return start(*chain, tools=[fetch], context=replace(context, config=config))

    return build


def texts(request: list[dict[str, Any]]) -> str:
    return "\n".join(str(message.get("content")) for message in request)


@pytest.mark.parametrize("turns", [60, pytest.param(300, marks=pytest.mark.nightly)])
async def test_a_small_window_is_never_too_small(opened, endpoint, turns) -> None:
    talk = opened()
    await talk.say(RULE)
    for number in range(turns - 1):
        said = await talk.say(f"Question {number}: what about {number}?")
        assert said[-1].text == "Done. HERON"
    assert endpoint.refused == 0
    assert len(endpoint.requests) > 2 * turns
    assert all(RULE in texts(body["messages"]) for body in endpoint.requests)
    assert all(
        f"Question {number}: what about {number}?" in texts(body["messages"])
        for number, body in enumerate(endpoint.requests[-1:], turns - 2)
    )
    stored = await talk.messages()
    assert sum(isinstance(message, HumanMessage) for message in stored) == turns
    assert len(stored) == 4 * turns


async def test_the_summary_is_asked_for_behind_the_unchanged_request(opened, endpoint) -> None:
    endpoint.calls_tools = False
    talk = opened()
    number = 0
    while not endpoint.summaries and number < 200:
        await talk.say(f"Question {number}. " + "blah " * 400)
        number += 1
    asked = endpoint.summaries[0].body
    before = endpoint.requests[-3]
    assert asked["messages"][: len(before["messages"])] == before["messages"]
    assert asked["tools"] == before["tools"]
    assert "hand-over" in asked["messages"][-1]["content"]
    after = talk.request(-1)
    assert len(after) < len(before["messages"])
    assert "Hand-over number 1." in texts(after)
    assert after[-1]["content"].startswith(f"Question {number - 1}.")


async def test_between_summaries_the_beginning_of_the_request_stays(opened, endpoint) -> None:
    talk = opened()
    for number in range(60):
        await talk.say(f"Question {number}?")
    main = [body["messages"] for body in endpoint.requests if "hand-over" not in str(body["messages"][-1]["content"])]
    changed = sum(later[: len(earlier)] != earlier for earlier, later in pairwise(main))
    state = await talk.state()
    assert 0 < changed <= len(state["summaries"])


async def test_what_the_model_says_as_a_summary_is_not_streamed(opened, endpoint) -> None:
    talk = opened()
    streamed = []
    for number in range(30):
        async for mode, event in talk.graph.astream(
            {"messages": [HumanMessage(f"Question {number}?")]},
            talk.config,
            context=talk.context,
            stream_mode=["messages", "custom"],
        ):
            streamed.append(event[0].text if mode == "messages" else event)
    assert endpoint.summaries
    assert not any("Hand-over" in event for event in streamed if isinstance(event, str))
    events = [event for event in streamed if isinstance(event, dict)]
    assert [event for event in events if event["type"] == "summarizing"]
    assert sum(event["type"] == "token_usage" for event in events) == len(endpoint.requests)


async def test_an_unknown_window_is_learned_from_the_refusal(opened, endpoint) -> None:
    talk = opened(window=None)
    for number in range(30):
        said = await talk.say(f"Question {number}?")
        assert said[-1].text == "Done. HERON"
    assert endpoint.refused == 1


async def test_a_guess_never_keeps_a_request_back(opened, endpoint) -> None:
    talk = opened(window=None)
    endpoint.calls_tools = False
    endpoint.script(HttpError(400, "This model's maximum context length is 10 tokens"))
    assert "request is too large" in (await talk.say("Question?"))[-1].text
    endpoint.script(Text("fine"))
    assert (await talk.say("Again?"))[-1].text == "fine"


async def test_without_summaries_old_results_are_shortened(opened, endpoint) -> None:
    talk = opened(enabled=False)
    await talk.say(RULE)
    for number in range(25):
        said = await talk.say(f"Question {number}?")
        assert said[-1].text == "Done. HERON"
    assert endpoint.refused == 0 and not endpoint.summaries
    assert "characters of this older text left out. The whole is in /mnt/user-data/workspace/.tool-results/" in texts(
        talk.request()
    )


async def test_a_summary_that_cannot_be_had_is_no_reason_to_fail(opened, endpoint) -> None:
    endpoint.failing_summaries = 1000
    talk = opened()
    for number in range(25):
        said = await talk.say(f"Question {number}?")
        assert said[-1].text == "Done. HERON"
    assert endpoint.refused == 0
    assert all(not summary["text"] for summary in (await talk.state())["summaries"])


async def test_what_can_never_fit_is_not_sent_and_says_what_helps(opened, endpoint) -> None:
    talk = opened()
    said = await talk.say("blah " * 40_000)
    assert endpoint.requests == []
    assert "too long" in said[-1].text and "/compact" in said[-1].text


async def test_a_branch_has_its_own_summaries(opened, endpoint) -> None:
    talk = opened()
    for number in range(40):
        await talk.say(f"Question {number}?")
    first = (await talk.state())["summaries"][0]
    stored = await talk.messages()
    position = next(i for i, message in enumerate(stored) if message.id == first["upto"])
    gone = [RemoveMessage(message.id) for message in stored[position:]]
    await talk.graph.aupdate_state(talk.config, {"messages": gone})
    await talk.say("A new way.")
    assert "Hand-over" not in texts(talk.request())


async def test_another_model_reads_the_conversation_as_text(opened, endpoint, chat_model) -> None:
    talk = opened(summarizer=chat_model("small"), summary_prompt="SUMMARISE: {messages}", trim_tokens_to_summarize=1000)
    for number in range(30):
        await talk.say(f"Question {number}?")
    asked = endpoint.summaries[-1].body
    assert asked["model"] == "small" and not asked.get("tools")
    [only] = asked["messages"]
    assert only["content"].startswith("SUMMARISE: [") and "older messages left out]" in only["content"]
    assert len(only["content"]) < 6000
    assert "Hand-over" in texts(talk.request())


@pytest.mark.parametrize(
    ("trigger", "turns"),
    [
        ({"type": "messages", "value": 12}, 3),
        ({"type": "tokens", "value": 6000}, 2),
        ({"type": "fraction", "value": 0.6}, 2),
    ],
)
async def test_each_trigger_of_the_configuration(opened, endpoint, trigger, turns) -> None:
    talk = opened(trigger=trigger, keep={"type": "messages", "value": 2})
    for number in range(turns):
        await talk.say(f"Question {number}?")
        assert not endpoint.summaries
    await talk.say("The last one?")
    await talk.say("The last one but this.")
    assert endpoint.summaries


async def test_texts_of_skills_stay_word_for_word(opened, endpoint, start, context, chat_model) -> None:
    skill = "Skill text, " * 300

    @tool
    def read_file(path: str) -> str:
        """Read."""
        return skill if path.startswith("/mnt/skills/") else "word " * 100

    endpoint.calls_tools = False
    settings = SummarizationConfig(trigger=(ContextSize(type="messages", value=10),))
    chain = [SummarizationMiddleware(settings, ContextWindows())]
    talk = start(*chain, tools=[read_file])
    endpoint.script(ToolCalls(("read_file", {"path": "/mnt/skills/public/a/SKILL.md"})), Text("ok"))
    await talk.say("Use the skill.")
    for number in range(12):
        endpoint.script(ToolCalls(("read_file", {"path": f"/mnt/user-data/workspace/{number}"})), Text("ok"))
        await talk.say(f"Question {number}?")
    assert endpoint.summaries
    assert skill.strip() in texts(talk.request())


async def test_compacting_on_demand(opened, endpoint) -> None:
    talk = opened(window=None, enabled=False)
    await talk.say(RULE)
    for number in range(5):
        await talk.say(f"Question {number}?")
    before = len(talk.request())
    asked = HumanMessage("/compact the figures", additional_kwargs={"compaction": {"keep": "the figures"}})
    await talk.graph.ainvoke({"messages": [asked]}, talk.config, context=talk.context)
    answer = (await talk.messages())[-1]
    assert answer.text.startswith("Summarized 24 messages:")
    assert "The user asks to keep above all: the figures" in endpoint.summaries[0].body["messages"][-1]["content"]
    await talk.say("And now?")
    now = talk.request(-2)
    assert len(now) < before and RULE in texts(now) and "Hand-over number 1." in texts(now)
    assert "/compact" not in texts(now) and "Summarized" not in texts(now)


async def test_compacting_during_the_work_lets_the_work_go_on(opened, endpoint) -> None:
    talk = opened()
    await talk.say(RULE)
    waiting = [[], [HumanMessage("/compact", id="c", additional_kwargs={"compaction": {"keep": ""}, "facts": {}})]]

    async def arrivals() -> list[Any]:
        return waiting.pop(0) if waiting else []

    talk.context = replace(talk.context, arrivals=arrivals)
    said = await talk.say("Question?")
    assert said[-1].text == "Done. HERON" and len(endpoint.summaries) == 1
    assert "Hand-over number 1." in texts(talk.request()) and "/compact" not in texts(talk.request())


async def test_there_may_be_nothing_to_compact(opened, endpoint) -> None:
    talk = opened()
    asked = HumanMessage("/compact", additional_kwargs={"compaction": {}})
    await talk.graph.ainvoke({"messages": [asked]}, talk.config, context=talk.context)
    assert (await talk.messages())[-1].text == "There is nothing to summarize yet."
    assert endpoint.requests == []


@pytest.mark.parametrize(
    ("words", "window"),
    [
        (
            "This model's maximum context length is 16385 tokens. However, your messages resulted in 20000 tokens.",
            16385,
        ),
        (
            "maximum context length is 8192 tokens, however you requested 9000 tokens (4904 in your prompt; 4096 for the completion)",
            8192,
        ),
        ("prompt is too long: 21000 tokens > 20000 maximum", 20000),
        ("input length and `max_tokens` exceed context limit: 19000 + 2000 > 20000, decrease input length", 20000),
        ("The input token count (21000) exceeds the maximum number of tokens allowed (20000).", 20000),
        ("the request exceeds the available context size (8192 tokens), try increasing it", 8192),
        ("Your input exceeds the context window of this model.", None),
    ],
)
def test_windows_are_read_from_refusals(chat_model, words, window) -> None:
    windows, model = ContextWindows(), chat_model()
    windows.refused(model, words, 20_000, 0)
    assert windows.window(model, None) == window
    assert (windows.limit(model, None) or 0) >= 0.75 * 0.95 * (window or 16_000)


@pytest.mark.parametrize(
    "message",
    [
        HumanMessage("hello " * 1000),
        HumanMessage("你好世界" * 1000),
        AIMessage("", tool_calls=[{"name": "write_file", "args": {"content": "x" * 4000}, "id": "1"}]),
        ToolMessage([{"type": "text", "text": "y" * 4000}], tool_call_id="1"),
    ],
)
def test_estimates_are_about_right(message: AnyMessage) -> None:
    assert 900 <= estimate(message) <= 4500
