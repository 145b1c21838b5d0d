"""A gateway for looking at the workspace: real sandbox, keyword agent, one account, and commands that wait for a person.

``python -m tests.support.workspace_server --home DIR --model URL [--port N] [--no-ui] [--no-account] [--demo] [--no-model] [--no-agents] [--guardrail]
[--web URL] [--daily-tokens N] [--transcription]``. The data stays in ``--home``, so that the process can be killed and started again.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import threading
from pathlib import Path
from typing import Any

import httpx
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain.agents.middleware.types import AgentState
from langchain_core.messages import HumanMessage

from deerflow.config import ConfigSource, Paths
from deerflow.runtime import Runtime
from deerflow_app.channels.platforms import makers
from deerflow_app.gateway.server import serve
from deerflow_app.gateway.settings import GatewaySettings

DEMO = {"name": "demo", "display_name": "Demo", "model": "demo", "use": "deerflow.models.demo:DemoChatModel"}
GUARDRAIL = {
    "enabled": True,
    "provider": {
        "use": "deerflow.guardrails.builtin:AllowlistProvider",
        "config": {"ask_tools": ["bash", "write_file"]},
    },
}
EMAIL, PASSWORD = "admin@example.com", "deerflow-2026"


class Approval(HumanInTheLoopMiddleware[Any, Any, Any]):
    """Asks before each command of a turn that begins with "approve"."""

    def __init__(self) -> None:
        super().__init__(interrupt_on={"bash": {"allowed_decisions": ["approve", "edit", "reject", "respond"]}})

    def after_model(self, state: AgentState[Any], runtime: Any) -> dict[str, Any] | None:
        said = next((m.text for m in reversed(state["messages"]) if isinstance(m, HumanMessage)), "")
        return super().after_model(state, runtime) if "approve" in said.lower().split()[:1] else None

    async def aafter_model(self, state: AgentState[Any], runtime: Any) -> dict[str, Any] | None:
        return self.after_model(state, runtime)


def config(model_url: str) -> dict[str, Any]:
    common = {
        "use": "deerflow.models.vllm_provider:VllmChatModel",
        "base_url": model_url,
        "api_key": "key",
        "max_retries": 0,
    }
    pricing = {"input": 2.0, "output": 8.0}
    return {
        "models": [
            {
                "name": "scripted",
                "display_name": "Scripted",
                "model": "scripted",
                "supports_thinking": True,
                "supports_reasoning_effort": True,
                "supports_vision": True,
                "context_window": 32000,
                "pricing": pricing,
                **common,
            },
            {"name": "scripted-mini", "display_name": "Scripted Mini", "model": "scripted-mini", **common},
        ],
        "sandbox": {"tool_image": {"enabled": False}},
        "skill_evolution": {"enabled": True},
    }


def web_tools(base: str) -> list[dict[str, Any]]:
    use = "deerflow.community.{}.tools:{}_tool".format
    files = {"read_file": "read_file_tool", "write_file": "write_file_tool", "bash": "bash_tool"}
    return [
        {"name": "web_search", "group": "web", "use": use("searx", "web_search"), "base_url": base},
        {"name": "image_search", "group": "web", "use": use("searx", "image_search"), "base_url": base},
        {"name": "web_fetch", "group": "web", "use": use("fetch", "web_fetch")},
        *({"name": n, "group": "work", "use": f"deerflow.sandbox.tools:{v}"} for n, v in files.items()),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--model", required=True, help="base URL of the keyword agent")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--no-ui", action="store_true")
    parser.add_argument("--no-account", action="store_true", help="leave the set-up to the page")
    parser.add_argument("--demo", action="store_true", help="with the demo model alone, as if none were connected")
    parser.add_argument(
        "--no-model", action="store_true", help="as after the first start: nobody has connected a model"
    )
    parser.add_argument("--no-agents", action="store_true", help="with agents_api switched off")
    parser.add_argument("--guardrail", action="store_true", help="ask before files are written and commands run")
    parser.add_argument("--web", metavar="URL", help="search this SearXNG, and open 127.0.0.2 for the web tools")
    parser.add_argument("--daily-tokens", type=int, help="what a person may use on a day")
    parser.add_argument("--transcription", action="store_true", help="the keyword agent hears dictation, too")
    options = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    options.home.mkdir(parents=True, exist_ok=True)
    file = options.home / "config.yaml"
    given = config(options.model) | ({"models": [DEMO]} if options.demo else {})
    if options.no_agents:
        given["agents_api"] = {"enabled": False}
    if options.no_model:
        del given["models"]
    if options.web:
        given["tools"] = web_tools(options.web)
        given["sandbox"]["network"] = {"allow_nets": ["127.0.0.2/32"]}
    if options.transcription:
        given["transcription"] = {"model": "scripted", "base_url": options.model, "api_key": "key"}
    if options.guardrail:
        given["guardrails"] = GUARDRAIL
    if options.daily_tokens:
        given["spending"] = {"per_person_day": {"tokens": options.daily_tokens}, "per_run": {"money": 5}}
    file.write_text(json.dumps(given))
    paths = Paths(options.home / "data")
    source = ConfigSource(
        file, environ=os.environ | {"DEER_FLOW_HOME": str(paths.base_dir)}, cwd=options.home, probe=lambda *_: ()
    )
    paths.ensure_base_dir()
    environ = {**source.current().origin.environ}
    settings = GatewaySettings.from_environ(environ, paths.base_dir, port=options.port, serve_ui=not options.no_ui)
    runtime = Runtime(source, paths, extra_middleware=[Approval()], platforms=makers((), environ))

    def started(url: str) -> None:
        ready = threading.Thread(target=_announce, args=(url, not options.no_account), daemon=True)
        ready.start()

    raise SystemExit(serve(runtime.database, settings, lambda: runtime, config_file=file, on_start=started))


def _announce(url: str, with_account: bool) -> None:
    """Print the address, once the first administrator exists."""
    if with_account:
        httpx.post(f"{url}/api/v1/auth/initialize", json={"email": EMAIL, "password": PASSWORD}, timeout=60)
    print(url, flush=True)


if __name__ == "__main__":
    main()
