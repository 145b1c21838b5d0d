"""Against a model that refuses whatever is longer than its window, over HTTP."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any, cast

import httpx
import pytest
from bench.replies import HttpError, Reply, Text, ToolCalls
from bench.request_log import Record
from bench.scripted_openai import ScriptedOpenAI
from bench.wire import Envelope
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage, ToolMessage, convert_to_messages
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from tests.support.unpaired_calls import unpaired_calls

from deerflow.agents.middlewares.dangling_tool_call_middleware import DanglingToolCallMiddleware
from deerflow.agents.middlewares.llm_error_handling_middleware import LLMErrorHandlingMiddleware
from deerflow.agents.middlewares.loop_detection_middleware import LoopDetectionMiddleware
from deerflow.agents.middlewares.summarization_middleware import FULL, SummarizationMiddleware
from deerflow.agents.middlewares.todo_middleware import TodoMiddleware
from deerflow.agents.middlewares.token_usage_middleware import TokenUsageMiddleware
from deerflow.agents.middlewares.tool_error_handling_middleware import ToolErrorHandlingMiddleware
from deerflow.agents.middlewares.uploads_middleware import SteeringMiddleware, UploadsMiddleware
from deerflow.agents.transcript import ARGUMENTS, thread_mark, without_long_arguments
from deerflow.config import AppConfig
from deerflow.config.schema import ContextSize, SummarizationConfig
from deerflow.context.arrivals import Arrivals
from deerflow.models.context_window import ContextWindows, estimate
from deerflow.models.openai import OpenAIChatModel
from deerflow.sandbox.tools import bash_tool, grep_tool, write_file_tool

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
        self.tool = "fetch"

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
            return ToolCalls((self.tool, {"what": str(last["content"])[-40:]}))
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


@tool
def failing(text: str) -> str:
    """Fail."""
    raise ValueError("no")


PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


async def no_sleep(seconds: float) -> None:
    return None


@pytest.fixture
def chat_model(endpoint: ScriptedOpenAI) -> Callable[..., ChatOpenAI]:
    """LangChain's own reads long arguments from the start again at each chunk."""

    def build(name: str = "scripted-model") -> ChatOpenAI:
        return OpenAIChatModel(  # a Timeout keeps it from using connections of an earlier test
            model=name,
            base_url=endpoint.base_url,
            api_key="k",
            max_retries=0,
            stream_usage=True,
            timeout=httpx.Timeout(60),
        )  # type: ignore[arg-type]

    return build


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
    assert f"\n{FULL}Write a hand-over" in asked["messages"][-1]["content"]
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


async def test_a_short_chat_is_sent_even_where_the_prompt_alone_is_too_large(start, endpoint, context) -> None:
    """No summary would help, and the window may be stated wrongly: the provider decides."""
    entry = {"name": "m", "use": "langchain_openai:ChatOpenAI", "model": "scripted-model", "context_window": 600}
    config = AppConfig.model_validate({"models": [entry]})
    settings = SummarizationMiddleware(SummarizationConfig(), await asyncio.to_thread(ContextWindows))
    long = [tool(f"tool_{n}", description="word " * 100)(fetch.func) for n in range(20)]  # type: ignore[attr-defined]
    chain = [LLMErrorHandlingMiddleware(sleep=no_sleep), settings]
    said = await start(*chain, tools=long, context=replace(context, config=config)).say("hi")
    assert endpoint.requests and "too long" not in said[-1].text


@pytest.mark.parametrize("words", ["blah " * 40_000, "長い" * 40_000, [{"type": "text", "text": "blah " * 40_000}]])
async def test_a_paste_larger_than_the_window_is_kept_as_a_file(opened, endpoint, workspace, words) -> None:
    """The model gets its two ends and the path; later turns, and a summary that keeps it word for word, too."""
    talk = opened()
    endpoint.calls_tools = False
    whole = words if isinstance(words, str) else words[0]["text"]
    asked = f"First words. {whole} The question at its end?"
    content = asked if isinstance(words, str) else [{"type": "text", "text": asked}, PICTURE]
    await talk.graph.ainvoke({"messages": [HumanMessage(content)]}, talk.config, context=talk.context)
    assert (await talk.messages())[-1].text == "Done. HERON" and endpoint.refused == 0
    sent = str(talk.request()[-1]["content"])
    assert "First words." in sent and "The question at its end?" in sent and len(sent) < 6000
    named = re.search(r"left out\. The whole message is in (\S+): use grep", sent)
    assert named is not None and (PICTURE["image_url"]["url"] in sent) is not isinstance(words, str)
    assert (workspace.workspace / named[1].removeprefix("/mnt/user-data/workspace/")).read_text() == asked
    await talk.say("And then?")
    before = talk.request()
    asked_again = HumanMessage("/compact", additional_kwargs={"compaction": {"keep": ""}})
    await talk.graph.ainvoke({"messages": [asked_again]}, talk.config, context=talk.context)
    assert (await talk.messages())[-1].text.startswith("Summarized 4 messages:")
    assert len(endpoint.summaries) == 1 and endpoint.summaries[0].body["messages"][: len(before)] == before
    await talk.say("And now?")
    assert named[1] in texts(talk.request()) and "The question at its end?" in texts(talk.request())
    assert endpoint.refused == 0 and (await talk.messages())[0].content == content


async def test_a_steering_message_larger_than_the_window_is_kept_as_a_file(opened, endpoint) -> None:
    talk = opened()
    waiting = [[], [HumanMessage("Look. " + "blah " * 40_000, id="late", additional_kwargs={"facts": {}})]]

    async def arrivals() -> list[Any]:
        return waiting.pop(0) if waiting else []

    talk.context = replace(talk.context, things={Arrivals: Arrivals(arrivals)})
    assert (await talk.say("Question?"))[-1].text == "Done. HERON"
    assert "The whole message is in /mnt/user-data/workspace/.tool-results/message-late.txt" in texts(talk.request())
    assert endpoint.refused == 0


async def test_long_arguments_of_a_finished_call_stand_in_its_file(start, endpoint, context, workspace) -> None:
    """From the next request on; those of a call that failed stay, since it is made again."""
    endpoint.calls_tools = False
    talk = start(ToolErrorHandlingMiddleware(), SummarizationMiddleware(), tools=[write_file_tool, bash_tool, failing])
    content, script = "line\n" * 60_000, "cat <<'E' >/dev/null\n" + "data\n" * 2_000 + "E\necho ok"
    endpoint.script(ToolCalls(("write_file", {"path": "big.txt", "content": content}), ("bash", {"command": script})))
    endpoint.script(
        ToolCalls(("failing", {"text": "f" * 9000}), ("write_file", {"path": "s", "content": "short"})), Text("ok")
    )
    await talk.say("go")
    calls = [call["function"] for message in talk.request() for call in message.get("tool_calls") or ()]
    args = [json.loads(call["arguments"]) for call in calls]
    assert "The whole is in /mnt/user-data/workspace/big.txt." in args[0]["content"] and len(args[0]["content"]) < 1000
    kept = re.search(r"The whole is in /mnt/user-data/workspace/(\S+)\.\]", args[1]["command"])
    assert kept is not None and (workspace.workspace / kept[1]).read_text() == f"command: {script}"
    assert args[2] == {"text": "f" * 9000} and args[3] == {"path": "s", "content": "short"}
    assert talk.request(-1)[: len(talk.request(-2))] == talk.request(-2)
    assert (await talk.messages())[1].tool_calls[0]["args"]["content"] == content  # type: ignore[union-attr]


def test_long_arguments_leave_the_blocks_of_providers_too() -> None:
    args = {"content": "x" * 9000}
    blocks = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "tool_use", "id": "c", "name": "write_file", "input": args},
        {"type": "function_call", "call_id": "c", "name": "write_file", "arguments": json.dumps(args)},
    ]
    asked = AIMessage(blocks, tool_calls=[{"name": "write_file", "args": args, "id": "c"}])
    done = ToolMessage("OK", tool_call_id="c", additional_kwargs={ARGUMENTS: "/a"})
    thinking, *cut = without_long_arguments([asked, done])[0].content
    assert thinking == blocks[0]
    assert all("The whole is in /a." in json.dumps(block) and len(json.dumps(block)) < 1000 for block in cut)
    assert without_long_arguments([asked, ToolMessage("Error", tool_call_id="c")])[0] is asked


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
    assert (FULL in texts(endpoint.summaries[0].body["messages"])) is (
        trigger["type"] == "fraction" and trigger["value"] > 0.7
    )


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
    question = endpoint.summaries[0].body["messages"][-1]["content"]
    assert "The user asks to keep above all: the figures" in question and FULL not in question
    await talk.say("And now?")
    now = talk.request(-2)
    assert len(now) < before and RULE in texts(now) and "Hand-over number 1." in texts(now)
    assert "/compact" not in texts(now) and "Summarized" not in texts(now)


async def test_what_the_person_said_stands_in_the_summary_and_does_not_ask_for_an_answer_again(
    opened, endpoint
) -> None:
    talk = opened(trigger={"type": "messages", "value": 12}, keep={"type": "messages", "value": 2})
    await talk.say(RULE)
    late = HumanMessage("and in French", id="late", additional_kwargs={"facts": {"date": "2026-11-03"}})
    waiting = [[], [late]]

    async def arrivals() -> list[Any]:
        return waiting.pop(0) if waiting else []

    talk.context = replace(talk.context, things={Arrivals: Arrivals(arrivals)})
    await talk.say("Question?")
    assert "The user sent this message while you were working" in texts(talk.request())
    number = 0
    while not (made := (await talk.state()).get("summaries")):
        await talk.say(f"Question {number}?")
        number += 1
    await talk.say("And now?")
    summary, *rest = talk.request(-2)
    mark, block = thread_mark(await talk.messages()), str(summary["content"])
    label = f"<system-{mark}>\nMessages of the user, answered earlier, kept word for word:\n</system-{mark}>"
    assert block.index("Hand-over number 1.") < block.index(f"{label}\n{RULE}\n\nQuestion?\n\nand in French")
    assert "while you were working" not in texts(talk.request(-2)) and RULE not in texts(rest)
    assert [one["pinned"][0] for one in made] == [(await talk.messages())[0].id]


async def test_a_summary_in_the_middle_of_a_turn_leaves_its_question_open(opened, endpoint) -> None:
    talk = opened(trigger={"type": "messages", "value": 6}, keep={"type": "messages", "value": 2})
    await talk.say(RULE)
    endpoint.calls_tools = False
    endpoint.script(*[ToolCalls(("fetch", {"what": str(n)})) for n in range(8)], Text("Done. HERON"))
    await talk.say("The question of this turn.")
    assert len(endpoint.summaries) > 1
    people = [message["content"] for message in talk.request() if message["role"] == "user"]
    assert (
        people[-1] == "The question of this turn." and sum("The question of this turn." in each for each in people) == 1
    )


async def test_a_figure_of_turn_3_is_found_in_turn_60_by_one_grep(start, context) -> None:
    """In the file that the summary names, under a window of 32k with large outputs in each turn."""
    with SmallWindow(32_000) as endpoint:
        model = ChatOpenAI(
            model="scripted-model", base_url=endpoint.base_url, api_key="k", stream_usage=True, max_retries=0
        )  # type: ignore[arg-type]
        entry = {"name": "m", "use": "langchain_openai:ChatOpenAI", "model": "scripted-model", "context_window": 32_000}
        config = AppConfig.model_validate({"models": [entry]})
        chain = [
            DanglingToolCallMiddleware(),
            ToolErrorHandlingMiddleware(),
            SummarizationMiddleware(windows=ContextWindows()),
        ]

        @tool
        def report(what: str) -> str:
            """Report."""
            return "word " * 5000 + ("\nrevenue: 48,213 crowns\n" if what.endswith("Turn 3.") else "") + "word " * 5000

        endpoint.tool = "report"
        talk = start(*chain, tools=[report, grep_tool], model=model, context=replace(context, config=config))
        for number in range(1, 60):
            await talk.say(f"Turn {number}.")
        endpoint.calls_tools = False
        named = re.search(r"All of it is in (\S+): use grep", texts(endpoint.requests[-1]["messages"]))
        assert named is not None and endpoint.refused == 0 and "48,213" not in texts(endpoint.requests[-1]["messages"])
        endpoint.script(ToolCalls(("grep", {"pattern": "revenue:", "path": named[1]})), Text("Done. HERON"))
        found = (await talk.say("Turn 60."))[-2]
        assert "revenue: 48,213 crowns" in found.text


async def test_compacting_during_the_work_lets_the_work_go_on(opened, endpoint) -> None:
    talk = opened()
    await talk.say(RULE)
    waiting = [[], [HumanMessage("/compact", id="c", additional_kwargs={"compaction": {"keep": ""}, "facts": {}})]]

    async def arrivals() -> list[Any]:
        return waiting.pop(0) if waiting else []

    talk.context = replace(talk.context, things={Arrivals: Arrivals(arrivals)})
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
