"""Resources and prompts of servers."""
# ruff: noqa: F811 - fixtures of other modules

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from bench.scripted_openai import ScriptedOpenAI, Text, ToolCalls
from mcp_types import Prompt, PromptArgument
from tests.harness.mcp.conftest import World, on_host
from tests.harness.mcp.test_turns_with_servers import client_of, file, offered, result  # noqa: F401

from deerflow.features.mcp.server import arguments_of, described


async def test_resources_are_read_by_two_tools_that_can_be_switched_off(world: World) -> None:
    tools = await world.tools({"s": on_host()})
    assert tools["s_read_resource"].metadata["readOnlyHint"] is True
    listed = (await world.call("s_list_resources")).content
    assert "- note://today today · What is up." in listed and "- note://day/{day}" in listed
    assert (await world.call("s_read_resource", uri="note://today")).content == "Buy tea."
    assert (await world.call("s_read_resource", uri="note://day/monday")).content == "Nothing on monday."
    missing = await world.call("s_read_resource", uri="note://nowhere")
    assert missing.status == "error" and "nowhere" in missing.content
    off = await world.tools({"s": on_host(tools={"read_resource": {"enabled": False}})})
    assert "s_list_resources" in off and "s_read_resource" not in off


async def test_a_message_calls_a_prompt_of_a_server(
    endpoint: ScriptedOpenAI,
    tmp_path: Path,
    file: Path,
) -> None:
    file.write_text(json.dumps({"mcpServers": {"my shop": on_host()}}))
    endpoint.script(Text("Dear Ada."), Text("How?"), Text("What?"), ToolCalls(("my_shop_environment", {})), Text("No."))
    guardrails = {"enabled": True, "policy": "auto"}
    async with await client_of(endpoint, tmp_path, guardrails=guardrails) as client:
        (prompt,) = await client.alist_mcp_prompts()
        assert (prompt["command"], [one["name"] for one in prompt["arguments"]]) == (
            "/my_shop:greet",
            ["name", "style"],
        )
        await client.achat('/my_shop:greet "Ada Lovelace" very polite', thread_id="t")
        said = endpoint.requests[0]["messages"][-1]["content"]
        assert "Greet Ada Lovelace in a very polite way." in said
        fence = re.search(
            r'</system-\w+>\n\n<untrusted-(\w+) source="my_shop:greet">\nGreet .*</server_prompt>\n</untrusted-\1>',
            said,
        )
        assert fence is not None, "the text is from outside, and cannot pass for the system's"
        await client.achat("/my_shop:greet", thread_id="u")
        assert "name is missing. It is called like this: /my_shop:greet name [style]" in str(
            endpoint.requests[1]["messages"][-1]["content"]
        )
        await client.achat("/my_shop:sing", thread_id="v")
        assert "server_prompt" not in str(endpoint.requests[2]["messages"][-1]["content"])
        await client.achat("Where are you?", thread_id="t")
        (waiting,) = (await client.athread_state("t"))["interrupts"]
        assert "my_shop:greet" in waiting["value"]["action_requests"][0]["description"], "its text is from outside"


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("ada", {"name": "ada"}),
        ("ada very polite", {"name": "ada", "style": "very polite"}),
        ("style=short ada lovelace", {"name": "ada lovelace", "style": "short"}),
        ("it's", {"name": "it's"}),
    ],
)
def test_arguments_of_a_prompt_are_words_in_their_order_or_named(text: str, given: dict[str, Any]) -> None:
    arguments = [PromptArgument(name="name", required=True), PromptArgument(name="style")]
    (prompt,) = described("s", [Prompt(name="greet", arguments=arguments)])
    assert arguments_of(prompt, text) == given


async def test_a_message_for_a_run_on_its_way_may_call_a_prompt_too(world: World) -> None:
    await world.tools({"s": on_host()})
    found = await world.servers.prompt(world.config, world.provider, "", "/s:greet Ada")
    assert found is not None and "Greet Ada in a formal way." in found["text"]
    assert await world.servers.prompt(world.config, world.provider, "", "/s:greet") == {
        "name": "s:greet",
        "error": "name is missing. It is called like this: /s:greet name [style]",
    }
