"""Rules of vendors of OpenAI's protocol: the requests that they document as refused, with their own error shapes.

A rule names its document and the day on which that was read; what no document or report states is no rule.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bench.replies import HttpError

Body = Mapping[str, Any]
Message = Mapping[str, Any]
READ = "2026-11-26"


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of request that a vendor refuses.

    Args:
        check: the vendor's words for what is wrong with a request; None: nothing.
        document: an address that states it.
        example: messages that are refused.
    """

    check: Callable[[Body], str | None]
    document: str
    example: tuple[Message, ...]
    read: str = READ


@dataclass(frozen=True, slots=True)
class RuleBook:
    """A vendor's rules and its form of an error."""

    name: str
    host: str
    error: Callable[[str], HttpError]
    rules: tuple[Rule, ...]

    def refusal(self, body: Body) -> HttpError | None:
        """Return the answer to a request that breaks a rule; None if it keeps all."""
        return next((self.error(found) for rule in self.rules if (found := rule.check(body))), None)


# what a request holds -------------------------------------------------------------------------------------------------


def messages(body: Body, *roles: str) -> Iterator[tuple[int, Message]]:
    """Yield the messages of these roles, or all, with their indexes."""
    return ((at, m) for at, m in enumerate(body.get("messages") or ()) if not roles or m.get("role") in roles)


def calls(body: Body) -> Iterator[tuple[int, int, Mapping[str, Any]]]:
    """Yield each tool call with the index of its message and its own."""
    for at, message in messages(body, "assistant"):
        yield from ((at, number, call) for number, call in enumerate(message.get("tool_calls") or ()))


def blocks(body: Body) -> Iterator[tuple[int, Any]]:
    """Yield each block of contents that are lists."""
    for at, message in messages(body):
        if isinstance(message.get("content"), list):
            yield from ((at, block) for block in message["content"])


# checks that several vendors share --------------------------------------------------------------------------------------


def field(words: str, *names: str, roles: tuple[str, ...] = ()) -> Callable[[Body], str | None]:
    """Refuse fields of messages by their names."""

    def check(body: Body) -> str | None:
        found = ((at, m["role"], name) for at, m in messages(body, *roles) for name in names if name in m)
        return next((words.format(at=at, role=role, name=name) for at, role, name in found), None)

    return check


def unknown_field(words: str, known: Mapping[str, set[str]]) -> Callable[[Body], str | None]:
    """Refuse every field of a message that its role does not have."""

    def check(body: Body) -> str | None:
        found = ((at, m["role"], name) for at, m in messages(body) for name in m.keys() - {"role", *known[m["role"]]})
        return next((words.format(at=at, role=role, name=name) for at, role, name in found), None)

    return check


def null_content(words: str, *, beside_calls: bool = True) -> Callable[[Body], str | None]:
    """Refuse messages without content."""

    def check(body: Body) -> str | None:
        found = (
            at for at, m in messages(body) if m.get("content") is None and (beside_calls or not m.get("tool_calls"))
        )
        return next((words.format(at=at) for at in found), None)

    return check


def bare_string(words: str) -> Callable[[Body], str | None]:
    """Refuse strings in a list of blocks."""
    return lambda body: next((words.format(at=at) for at, block in blocks(body) if isinstance(block, str)), None)


def text_as_list(words: str, *roles: str) -> Callable[[Body], str | None]:
    """Refuse a list where a role's content must be a string."""

    def check(body: Body) -> str | None:
        return next(
            (words.format(at=at) for at, m in messages(body, *roles) if isinstance(m.get("content"), list)), None
        )

    return check


def call_ids(words: str, pattern: str) -> Callable[[Body], str | None]:
    """Refuse ids of calls and results that do not match."""

    def check(body: Body) -> str | None:
        ids = [(at, call.get("id")) for at, _, call in calls(body)]
        ids += [(at, m.get("tool_call_id")) for at, m in messages(body, "tool")]
        return next((words.format(at=at, id=id_) for at, id_ in ids if not re.fullmatch(pattern, id_ or "")), None)

    return check


def arguments(words: str) -> Callable[[Body], str | None]:
    """Refuse calls whose arguments are no JSON object."""

    def is_object(call: Mapping[str, Any]) -> bool:
        try:
            return isinstance(json.loads(call["function"]["arguments"]), dict)
        except (TypeError, ValueError):
            return False

    def check(body: Body) -> str | None:
        return next(
            (words.format(at=at, id=call.get("id")) for at, _, call in calls(body) if not is_object(call)), None
        )

    return check


def names(words: str, pattern: str = r"[A-Za-z0-9_-]{1,64}") -> Callable[[Body], str | None]:
    """Refuse calls of tools with illegal names."""

    def check(body: Body) -> str | None:
        found = ((at, n, call["function"].get("name") or "") for at, n, call in calls(body))
        return next((words.format(at=at, n=n) for at, n, name in found if not re.fullmatch(pattern, name)), None)

    return check


def order(words: str, before: str, after: str) -> Callable[[Body], str | None]:
    """Refuse a role right behind another."""

    def check(body: Body) -> str | None:
        roles = [message["role"] for _, message in messages(body)]
        return words if (before, after) in itertools.pairwise(roles) else None

    return check


def missing_on_calls(words: str, name: str) -> Callable[[Body], str | None]:
    """Refuse messages with calls that lack a field."""

    def check(body: Body) -> str | None:
        found = (at for at, m in messages(body, "assistant") if m.get("tool_calls") and name not in m)
        return next((words.format(at=at) for at in found), None)

    return check


def unanswered(words: str) -> Callable[[Body], str | None]:
    """Refuse results without their call, and calls without their result, right behind the message."""

    def check(body: Body) -> str | None:
        open_ids: set[str] = set()
        for _, message in messages(body):
            if message["role"] == "tool":
                if message.get("tool_call_id") not in open_ids:
                    return words.format(id=message.get("tool_call_id"))
                open_ids.discard(message["tool_call_id"])
                continue
            if open_ids:
                return words.format(id=min(open_ids))
            open_ids = {call["id"] for call in message.get("tool_calls") or ()}
        return words.format(id=min(open_ids)) if open_ids else None

    return check


def same_ids(words: str) -> Callable[[Body], str | None]:
    """Refuse an id that two calls have."""

    def check(body: Body) -> str | None:
        seen: set[str] = set()
        for at, _, call in calls(body):
            if call["id"] in seen:
                return words.format(at=at)
            seen.add(call["id"])
        return None

    return check


def empty_text(words: str) -> Callable[[Body], str | None]:
    """Refuse text blocks without text."""

    def is_empty(block: Any) -> bool:
        return isinstance(block, dict) and block.get("type") == "text" and not block["text"]

    return lambda body: next((words.format(at=at) for at, block in blocks(body) if is_empty(block)), None)


def unsigned(body: Body) -> str | None:
    """Refuse messages whose first call has no thought signature."""
    for at, message in messages(body, "assistant"):
        for call in (message.get("tool_calls") or [])[:1]:
            google = (call.get("extra_content") or {}).get("google") or {}
            if not (google.get("thought_signature") or call.get("thought_signature")):
                return f"Function call is missing a thought_signature in functionCall parts. Function call `{call['function']['name']}`, position {at}."
    return None


def remote_picture(body: Body) -> str | None:
    """Refuse pictures that are addresses."""
    pictures = (b["image_url"]["url"] for _, b in blocks(body) if isinstance(b, dict) and b.get("type") == "image_url")
    return next(("invalid image input" for url in pictures if not url.startswith("data:")), None)


def late_system(body: Body) -> str | None:
    """Refuse system messages behind others."""
    return "System message must be at the beginning." if any(at for at, _ in messages(body, "system")) else None


def parameter(words: str, name: str) -> Callable[[Body], str | None]:
    """Refuse a parameter of the request."""
    return lambda body: words if name in body else None


def picture_in_result(words: str) -> Callable[[Body], str | None]:
    """Refuse anything but text in tool results."""

    def check(body: Body) -> str | None:
        results = (m["content"] for _, m in messages(body, "tool") if isinstance(m.get("content"), list))
        return words if any(block.get("type") != "text" for content in results for block in content) else None

    return check


# error shapes -----------------------------------------------------------------------------------------------------------


def openai_error(message: str) -> HttpError:
    """Return OpenAI's error, which most vendors copy."""
    return HttpError(400, {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}})


def mistral_error(message: str) -> HttpError:
    """Return Mistral's error: 422 for what its schema does not know."""
    if "Extra inputs" in message:
        return HttpError(422, {"object": "error", "message": {"detail": message}, "type": "invalid_request_error"})
    return HttpError(
        400, {"object": "error", "message": message, "type": "invalid_request_message_order", "code": "3230"}
    )


def minimax_error(message: str) -> HttpError:
    """Return MiniMax's error, whose code stands in its words."""
    error = {"type": "bad_request_error", "message": f"invalid params, {message} (2013)", "http_code": "400"}
    return HttpError(400, {"type": "error", "error": error, "request_id": "1"})


def anthropic_error(message: str) -> HttpError:
    """Return Anthropic's error."""
    return HttpError(400, {"type": "error", "error": {"type": "invalid_request_error", "message": message}})


def google_error(message: str) -> HttpError:
    """Return Google's error, which is a list."""
    body = json.dumps([{"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}]).encode()
    return HttpError(400, body)


def openrouter_error(message: str) -> HttpError:
    """Return OpenRouter's error around that of the provider behind it."""
    return HttpError(400, {"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": message}}})


def dashscope_error(message: str) -> HttpError:
    """Return DashScope's error in its compatible mode."""
    text = f"<400> InternalError.Algo.InvalidParameter: {message}"
    error = {"code": "invalid_parameter_error", "param": None, "message": text, "type": "invalid_request_error"}
    return HttpError(400, {"error": error, "request_id": "1"})


def zhipu_error(message: str) -> HttpError:
    """Return Zhipu's error, with a number for a code."""
    return HttpError(400, {"error": {"code": "1214", "message": message}})


def vllm_error(message: str) -> HttpError:
    """Return vLLM's error."""
    return HttpError(400, {"error": {"message": message, "type": "BadRequestError", "param": None, "code": 400}})


# examples ---------------------------------------------------------------------------------------------------------------

HI: Message = {"role": "user", "content": "hi"}


def called(id_: str = "abcdefghi", name: str = "bash", arguments: str = "{}", **fields: Any) -> tuple[Message, ...]:
    """Return a call and its result."""
    call = {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}
    asked = {"role": "assistant", "content": "", "tool_calls": [call], **fields}
    return HI, asked, {"role": "tool", "tool_call_id": id_, "content": "ok"}


NAMED = ({**HI, "name": "ann"},)
BARE = ({"role": "user", "content": ["hi"]},)
LONELY = (HI, {"role": "tool", "tool_call_id": "x", "content": "ok"})
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
SAID = {"role": "assistant", "content": "x"}

_STANDARD = {
    "system": {"content"},
    "user": {"content"},
    "assistant": {"content", "tool_calls", "prefix"},
    "tool": {"content", "tool_call_id", "name"},
}

OPENAI = RuleBook(
    "openai",
    "api.openai.com",
    openai_error,
    (
        Rule(names("Invalid 'messages[{at}].tool_calls[{n}].function.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."), "https://platform.openai.com/docs/api-reference/chat/create", called(name="functions.bash")),
        Rule(call_ids("Invalid 'messages[{at}].tool_calls[0].id': string too long. Expected a string with maximum length 40.", r".{1,40}"), "https://platform.openai.com/docs/api-reference/chat/create", called(id_="x" * 41)),
        Rule(null_content("Invalid value for 'content': expected a string, got null.", beside_calls=False), "https://github.com/docker/docker-agent/issues/63", ({"role": "assistant", "content": None},)),
        Rule(picture_in_result("Invalid 'messages'. Image URLs are only allowed for messages with role 'user'."), "https://platform.openai.com/docs/api-reference/chat/create", (*called()[:2], {"role": "tool", "tool_call_id": "abcdefghi", "content": [PICTURE]})),
        Rule(bare_string("Invalid type for 'messages[{at}].content[0]': expected an object, but got a string instead."), "https://platform.openai.com/docs/api-reference/chat/create", BARE),
        Rule(unanswered("An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id': {id}"), "https://platform.openai.com/docs/guides/function-calling", called()[:2]),
    ),
)  # fmt: skip
GROQ = RuleBook(
    "groq",
    "api.groq.com",
    openai_error,
    (
        Rule(field("'messages.{at}' : for 'role:{role}' the following must be satisfied[('messages.{at}' : property 'name' is unsupported)]", "name", roles=("system", "user", "assistant")), "https://console.groq.com/docs/openai", NAMED),
        Rule(field("'messages.{at}' : for 'role:{role}' the following must be satisfied[('messages.{at}' : property '{name}' is unsupported)]", "reasoning_content", "reasoning_details"), "https://github.com/janhq/jan/issues/8136", ({**SAID, "reasoning_content": "hm"},)),
        Rule(lambda body: None if "gpt-oss" in body["model"] else field("messages[{at}].reasoning: reasoning is not supported with this model", "reasoning")(body), "https://github.com/vercel/ai/pull/8057", ({**SAID, "reasoning": "hm"},)),
    ),
)  # fmt: skip
MISTRAL = RuleBook(
    "mistral",
    "api.mistral.ai",
    mistral_error,
    (
        Rule(unknown_field("Extra inputs are not permitted: body.messages.{at}.{role}.{name}", _STANDARD), "https://github.com/Gage-Technologies/mistral-go/pull/2", NAMED),
        Rule(call_ids("Tool call id was {id} but must be a-z, A-Z, 0-9, with a length of 9.", r"[A-Za-z0-9]{9}"), "https://github.com/langchain-ai/langchain/pull/24668", called(id_="call_1")),
        Rule(order("Unexpected role 'user' after role 'tool'", "tool", "user"), "https://github.com/onyx-dot-app/onyx/issues/6458", (*called(), HI)),
        Rule(parameter("Extra inputs are not permitted: body.max_completion_tokens", "max_completion_tokens"), "https://docs.mistral.ai/api/", ()),
    ),
)  # fmt: skip
MINIMAX = RuleBook(
    "minimax",
    "api.minimax.io",
    minimax_error,
    (
        Rule(field("name must be consistent", "name", roles=("system", "user", "assistant")), "https://platform.minimax.io/docs/api-reference/text-openai-api", NAMED),
        Rule(unanswered("tool result's tool id({id}) not found"), "https://github.com/MiniMax-AI/MiniMax-M2/issues/76", LONELY),
        Rule(arguments("invalid function arguments json string, tool_call_id: {id}"), "https://github.com/earendil-works/pi/issues/5468", called(arguments='{"a')),
        Rule(names("function name or parameters is empty", r".+"), "https://github.com/gsd-build/gsd-2/issues/4538", called(name="")),
    ),
)  # fmt: skip
DEEPSEEK = RuleBook(
    "deepseek",
    "api.deepseek.com",
    openai_error,
    (
        Rule(missing_on_calls("Missing `reasoning_content` field in the assistant message at message index {at}.", "reasoning_content"), "https://api-docs.deepseek.com/guides/thinking_mode", called()),
        Rule(text_as_list("Failed to deserialize the JSON body into the target type: messages[{at}]: invalid type: sequence, expected a string", "system", "assistant", "tool"), "https://api-docs.deepseek.com/api/create-chat-completion", ({"role": "system", "content": [{"type": "text", "text": "a"}]},)),
        Rule(unanswered("An assistant message with 'tool_calls' must be followed by tool messages: {id}"), "https://api-docs.deepseek.com/api/create-chat-completion", called(reasoning_content="")[:2]),
    ),
)  # fmt: skip
ANTHROPIC_RULES = (
    Rule(call_ids("messages.{at}.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'", r"[A-Za-z0-9_-]+"), "https://github.com/maximhq/bifrost/issues/5097", called(id_="functions.bash:0")),
    Rule(names("messages.{at}.content.{n}.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'", r"[A-Za-z0-9_-]{1,128}"), "https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/implement-tool-use", called(name="functions.bash")),
    Rule(empty_text("messages.{at}: text content blocks must be non-empty"), "https://docs.anthropic.com/en/api/messages", ({"role": "user", "content": [{"type": "text", "text": ""}]},)),
)  # fmt: skip
ANTHROPIC = RuleBook("anthropic", "api.anthropic.com", anthropic_error, ANTHROPIC_RULES)
OPENROUTER = RuleBook("openrouter", "openrouter.ai", openrouter_error, ANTHROPIC_RULES)
GEMINI = RuleBook(
    "gemini",
    "generativelanguage.googleapis.com",
    google_error,
    (
        Rule(unsigned, "https://ai.google.dev/gemini-api/docs/thought-signatures", called()),
        Rule(
            bare_string("Invalid value at 'messages[{at}].content'"),
            "https://ai.google.dev/gemini-api/docs/openai",
            BARE,
        ),
    ),
)
DASHSCOPE = RuleBook(
    "dashscope",
    "dashscope.aliyuncs.com",
    dashscope_error,
    (
        Rule(arguments('The "function.arguments" parameter of the code model must be in JSON format.'), "https://github.com/HKUDS/nanobot/issues/2469", called(arguments="null")),
        Rule(names("The length of the tool name cannot exceed 64.", r".{0,64}"), "https://github.com/QwenLM/Qwen3-VL/issues/2069", called(name="x" * 80)),
        Rule(unanswered('An assistant message with "tool_calls" must be followed by tool messages responding to each "tool_call_id": {id}'), "https://github.com/QwenLM/qwen-code/issues/656", called()[:2]),
    ),
)  # fmt: skip
ZHIPU = RuleBook(
    "zhipu",
    "open.bigmodel.cn",
    zhipu_error,
    (
        Rule(text_as_list("messages 参数非法。请检查文档。", "system", "assistant", "tool"), "https://docs.bigmodel.cn/api-reference/模型-api/对话补全", ({"role": "tool", "tool_call_id": "x", "content": [{"type": "text", "text": "a"}]},)),
        Rule(unanswered("messages 参数非法。请检查文档。"), "https://github.com/lobehub/lobehub/issues/11408", LONELY),
    ),
)  # fmt: skip
VLLM = RuleBook(
    "vllm",
    "vllm.internal",
    vllm_error,
    (
        Rule(arguments("Expecting value: line 1 column 1 (char 0)"), "https://github.com/vllm-project/vllm/pull/48922", called(arguments='{"a')),
        Rule(late_system, "https://github.com/intuitem/ciso-assistant-community/issues/4679", (HI, {"role": "system", "content": "late"})),
    ),
)  # fmt: skip
OLLAMA = RuleBook(
    "ollama",
    "ollama.internal",
    openai_error,
    (
        Rule(null_content("invalid message content type: <nil>"), "https://github.com/pydantic/pydantic-ai/issues/5206", called(content=None)),
        Rule(bare_string("invalid message format"), "https://github.com/ollama/ollama/blob/main/openai/openai.go", BARE),
        Rule(remote_picture, "https://github.com/ollama/ollama/blob/main/openai/openai.go", ({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]},)),
    ),
)  # fmt: skip

RULE_BOOKS = (
    *(OPENAI, GROQ, MISTRAL, MINIMAX, DEEPSEEK, ANTHROPIC, OPENROUTER, GEMINI, DASHSCOPE, ZHIPU, VLLM, OLLAMA),
)
BY_HOST: Mapping[str, RuleBook] = {book.host: book for book in RULE_BOOKS}
