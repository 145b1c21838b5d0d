"""A model for looking at the workspace: the first word of a person's message says how it behaves.

Without the word it answers with a few sentences. ``python -m tests.support.keyword_agent --port N`` serves it.
"""

from __future__ import annotations

import argparse
import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bench.replies import Cut, Delay, HttpError, Reply, Text, ToolCalls
from bench.scenarios import text_of
from bench.scripted_openai import Record, ScriptedOpenAI
from tests.support import keyword_texts as texts

Message = Mapping[str, Any]
OUTPUTS = "/mnt/user-data/outputs"
USAGE = {"prompt_tokens": 4200, "completion_tokens": 180, "total_tokens": 4380}
CACHED = {**USAGE, "prompt_tokens_details": {"cached_tokens": 3900}}


class KeywordAgent(ScriptedOpenAI):
    """As the scripted endpoint; replies that were queued come first."""

    def reply_to(self, record: Record) -> Reply:
        if self.unused or not record.body.get("messages"):
            return super().reply_to(record)
        messages = record.body["messages"]
        if not record.body.get("tools"):
            return _auxiliary("\n".join(text_of(message) for message in messages))
        if "Write a hand-over" in text_of(messages[-1]):
            return Text(texts.SUMMARY)
        at, said = _question(messages)
        word, _, rest = said.partition(" ")
        results = [text_of(message) for message in messages[at:] if message["role"] == "tool"]
        behaviour = BEHAVIOURS.get(word.lower().strip(".:"), _default)
        return behaviour(rest.strip() or "", results)


def _question(messages: Sequence[Message]) -> tuple[int, str]:
    """The newest message of the person, and what it says; notes that are put in for the model stand in tags."""
    for at in range(len(messages) - 1, -1, -1):
        if messages[at]["role"] == "user":
            said = re.sub(r"<([\w-]+)[^>]*>.*?</\1>", "", text_of(messages[at]), flags=re.DOTALL).strip()
            if said:
                return at, said
    return 0, ""


def _auxiliary(prompt: str) -> Reply:
    if "JSON array" in prompt:
        suggestions = '["Show the numbers as a chart", "Write it up as a report", "What would you check next?"]'
        return Text(suggestions, chunks=[suggestions])
    return Text("A scripted conversation", chunks=["A scripted ", "conversation"])


def _default(rest: str, results: Sequence[str]) -> Reply:
    return Delay(0.0, Text(texts.HELLO, usage=USAGE), between=0.004)


def _long(rest: str, results: Sequence[str]) -> Reply:
    """`long N`: N words, slowly."""
    count = int(rest.split()[0]) if rest[:1].isdigit() else 200
    return Delay(0.0, Text(chunks=[f"word{i} " for i in range(count)]), between=0.02)


def _prose(rest: str, results: Sequence[str]) -> Reply:
    """`prose N`: about N tokens of Markdown, quickly."""
    count = int(rest.split()[0]) if rest[:1].isdigit() else 1000
    chunks = re.findall(r"\S+\s*|\s+", texts.PROSE)
    return Delay(0.0, Text(chunks=[chunks[i % len(chunks)] for i in range(count)]), between=0.003)


def _think(rest: str, results: Sequence[str]) -> Reply:
    return Delay(0.0, Text("The answer is **42**.", reasoning=texts.REASONING), between=0.03)


def _bash(rest: str, results: Sequence[str]) -> Reply:
    """`bash COMMAND`"""
    if results:
        return Text("The command has ended. " + ("It failed." if "exit" in results[-1].lower() else "All is well."))
    return ToolCalls(("bash", {"description": "Run the command", "command": rest or "echo hello; ls -la"}), usage=USAGE)


def _later(rest: str, results: Sequence[str]) -> Reply:
    """`later N COMMAND`: the command, after N seconds."""
    seconds, _, command = rest.partition(" ")
    reply = _bash(command, results)
    return reply if results else Delay(float(seconds), reply)


def _twice(rest: str, results: Sequence[str]) -> Reply:
    """`twice COMMAND`: it and another one, in one reply."""
    if results:
        return Text("Both commands have ended.")
    return ToolCalls(*[("bash", {"description": what, "command": what}) for what in (rest, "echo second")])


def _slow(rest: str, results: Sequence[str]) -> Reply:
    """`slow N`: a command that writes a line now and then, N times."""
    count = int(rest) if rest.isdigit() else 40
    command = f'for i in $(seq 1 {count}); do echo "step $i of {count}"; sleep 0.25; done'
    return _bash(command, results)


def _background(rest: str, results: Sequence[str]) -> Reply:
    if results:
        return Text("The server is running in the background.")
    arguments = {"description": "Start a server", "command": "python3 -m http.server 8123", "run_in_background": True}
    return ToolCalls(("bash", arguments))


def _write(rest: str, results: Sequence[str]) -> Reply:
    """`write`: a report, changed once, delivered."""
    path = f"{OUTPUTS}/report.md"
    steps: list[Reply] = [
        ToolCalls(
            ("write_file", {"description": "Write the report", "path": path, "content": texts.REPORT}),
            text="I will write the report first.",
            reasoning="A short report needs a table and a conclusion.",
            usage=USAGE,
        ),
        ToolCalls(
            (
                "str_replace",
                {"description": "Make it precise", "path": path, "old_str": "about a third", "new_str": "34 %"},
            )
        ),
        ToolCalls(("present_files", {"filepaths": [path]})),
        Text("The report is ready: sales grew by **34 %** in spring.", usage=USAGE),
    ]
    return steps[min(len(results), 3)]


def _site(rest: str, results: Sequence[str]) -> Reply:
    """`site`: a page with a style sheet and a second page."""
    writes = [
        ("write_file", {"description": f"Write {name}", "path": f"{OUTPUTS}/site/{name}", "content": content})
        for name, content in texts.SITE.items()
    ]
    if not results:
        return ToolCalls(*writes)
    if len(results) == len(writes):
        return ToolCalls(("present_files", {"filepaths": [f"{OUTPUTS}/site/index.html"]}))
    return Text("The site is ready. Open it in the panel.")


def _files(rest: str, results: Sequence[str]) -> Reply:
    """`files`: one of each kind."""
    if not results:
        return ToolCalls(("bash", {"description": "Make the files", "command": texts.MAKE_FILES}))
    if len(results) == 1:
        names = ("data.csv", "chart.svg", "picture.png", "paper.pdf", "notebook.ipynb", "script.py", "facts.json")
        return ToolCalls(("present_files", {"filepaths": [f"{OUTPUTS}/{name}" for name in names]}))
    return Text("Seven files are ready.")


def _plan(rest: str, results: Sequence[str]) -> Reply:
    """`plan`: a list of what is to be done, worked off (needs the mode pro or ultra)."""
    names = ["Read the data", "Compute the totals", "Write the summary"]

    def todos(done: int) -> tuple[str, dict[str, Any]]:
        state = ["completed"] * done + ["in_progress"] + ["pending"] * 3
        return "write_todos", {"todos": [{"content": n, "status": s} for n, s in zip(names, state, strict=False)]}

    work = ("bash", {"description": "Work a little", "command": "sleep 1; echo done"})
    calls = [todos(0), work, todos(1), work, todos(2), work, todos(3)]
    return ToolCalls(calls[len(results)]) if len(results) < len(calls) else Text("All three steps are done.")


def _ask(rest: str, results: Sequence[str]) -> Reply:
    arguments = {
        "question": "Which format should the report have?",
        "clarification_type": "approach_choice",
        "context": "The data fits on a page.",
        "options": ["Markdown", "PDF", "A web page"],
    }
    return ToolCalls(("ask_clarification", arguments))


def _approve(rest: str, results: Sequence[str]) -> Reply:
    """`approve COMMAND // COMMAND`: the commands wait for a person's word, all at once."""
    if results:
        return Text(f"Understood. The tool said: {' and '.join(result[-200:] for result in results)}")
    commands = (rest or "rm -rf old; echo removed").split(" // ")
    return ToolCalls(*(("bash", {"description": "Remove old files", "command": command}) for command in commands))


def _error(rest: str, results: Sequence[str]) -> Reply:
    """`error 401|429|400|500|context`"""
    if rest.startswith("context"):
        return HttpError(
            400, {"error": {"message": "maximum context length is 8192", "code": "context_length_exceeded"}}
        )
    return HttpError(int(rest.split()[0]) if rest[:1].isdigit() else 401)


def _many(rest: str, results: Sequence[str]) -> Reply:
    """`many N`: N commands, one after the other, then an answer."""
    count = int(rest) if rest.isdigit() else 6
    if len(results) < count:
        return ToolCalls(
            (
                "bash",
                {"description": f"Look at part {len(results) + 1}", "command": f"sleep 0.3; seq 1 {5 + len(results)}"},
            )
        )
    return Text(f"I looked at {count} parts. Nothing is missing.")


def _fleet(rest: str, results: Sequence[str]) -> Reply:
    """`fleet N M`: N subagents, three at a time, each with M steps (needs `subagent_enabled`)."""
    count, steps = (int(number) for number in rest.split()[:2])
    left = range(len(results) + 1, min(count, len(results) + 3) + 1)
    if left:
        given = {"prompt": f"quick {steps}", "subagent_type": "general-purpose"}
        return ToolCalls(*(("task", {"description": f"Look at part {number}", **given}) for number in left))
    return Text(f"All {count} parts were looked at.", usage=USAGE)


def _quick(rest: str, results: Sequence[str]) -> Reply:
    """`quick N`: N steps that take no time, one after the other, then an answer."""
    if len(results) < int(rest):
        look = {"description": f"Look for {len(results) + 1}", "pattern": f"*{len(results) + 1}.md"}
        return ToolCalls(("glob", look), usage=CACHED)
    return Text("Nothing is missing.", usage=CACHED)


def _cite(rest: str, results: Sequence[str]) -> Reply:
    """`cite BASE`: search a web, read two of its pages, answer with citations and deliver a cited report."""
    pages = [f"{rest}/aarau", f"{rest}/cork"]
    if not results:
        return ToolCalls(("web_search", {"query": "quieter streets measures"}))
    if len(results) == 1:
        return ToolCalls(*(("web_fetch", {"url": page}) for page in pages))
    kept = [re.search(r"^Kept as: (\S+)", result, re.MULTILINE) for result in results[1:3]]
    said = [re.search(r"^In \w+, noise.*$", result, re.MULTILINE) for result in results[1:3]]
    if len(results) == 3:
        lines = [f"{match[0]} [{n}]" for n, match in enumerate(said, 1) if match]
        lines += ["", "# Sources", ""]
        lines += [
            f"[{n}] Quieter streets, 2026. {page} ([as it was read]({match[1] if match else ''}))"
            for n, (page, match) in enumerate(zip(pages, kept, strict=True), 1)
        ]
        report = {"description": "Write the report", "path": f"{OUTPUTS}/cited.md"}
        return ToolCalls(("write_file", {**report, "content": "# Quieter streets\n\n" + "\n".join(lines)}))
    if len(results) == 4:
        return ToolCalls(("present_files", {"filepaths": [f"{OUTPUTS}/cited.md"]}))
    cited = [
        f"{match[0]}[citation:Quieter streets in {page.rpartition('/')[2].capitalize()}]({page})"
        for page, match in zip(pages, said, strict=True)
        if match
    ]
    text = f"{cited[0]} That was the first report.\n\n- {cited[1]} A shop disagrees "
    text += f"[citation:Not opened](https://shop.example/quiet), and so does [citation:Aarau]({pages[0]})."
    return Delay(0.0, Text(f"{text}\n\n![A street]({rest}/street.png)"), between=0.004)


def _pictures(rest: str, results: Sequence[str]) -> Reply:
    """`pictures`: an image search."""
    return Text("These are the pictures.") if results else ToolCalls(("image_search", {"query": "quiet streets"}))


def _fail(rest: str, results: Sequence[str]) -> Reply:
    if results:
        return Text("Reading failed, the file does not exist.")
    return ToolCalls(
        ("read_file", {"description": "Read the notes", "path": "/mnt/user-data/workspace/missing.txt"}),
        ("bash", {"description": "Break something", "command": "echo oops >&2; exit 3"}),
    )


def _delegate(rest: str, results: Sequence[str], **more: Any) -> Reply:
    """`delegate PROMPT // PROMPT`: each to a subagent, three at a time; a prompt may name itself: `Count the rows: slow 8`."""
    prompts = rest.split(" // ")
    if len(results) >= len(prompts):
        return Text(f"All {len(prompts)} have reported.", usage=USAGE)
    calls: list[tuple[str, dict[str, Any]]] = []
    for prompt in prompts[len(results) :][:3]:
        name, _, work = prompt.rpartition(": ")
        given = {"description": name or work, "prompt": work, "subagent_type": "general-purpose"}
        calls.append(("task", given | more))
    return ToolCalls(*calls, text="I give each part to a sub-agent." if not results else "", usage=USAGE)


def _aside(rest: str, results: Sequence[str]) -> Reply:
    """As `delegate`, in the background."""
    return _delegate(rest, results, background=True)


def _shown(text: str) -> Callable[[str, Sequence[str]], Reply]:
    return lambda rest, results: Delay(0.0, Text(text), between=0.004)


def _suggest(rest: str, results: Sequence[str]) -> Reply:
    """`suggest NAME`: a skill of that name, or its change."""
    if results:
        return Text("I have suggested it.")
    skill = f"---\nname: {rest}\ndescription: Writes the weekly report.\n---\n\nBegin with the numbers.\n"
    return ToolCalls(("skill_manage", {"action": "create", "name": rest, "content": skill}))


def _setup(rest: str, results: Sequence[str]) -> Reply:
    """`setup TEXT`: saves the agent that the conversation is about."""
    if results:
        return Text("Your agent is ready.")
    return ToolCalls(("setup_agent", {"soul": f"# Manner\n\n{rest}", "description": rest}))


BEHAVIOURS: Mapping[str, Callable[[str, Sequence[str]], Reply]] = {
    "long": _long,
    "prose": _prose,
    "think": _think,
    "bash": _bash,
    "later": _later,
    "twice": _twice,
    "slow": _slow,
    "background": _background,
    "write": _write,
    "site": _site,
    "files": _files,
    "plan": _plan,
    "ask": _ask,
    "approve": _approve,
    "error": _error,
    "many": _many,
    "fleet": _fleet,
    "quick": _quick,
    "fail": _fail,
    "delegate": _delegate,
    "aside": _aside,
    "cite": _cite,
    "pictures": _pictures,
    "suggest": _suggest,
    "setup": _setup,
    "cut": lambda rest, results: Cut(5),
    "markdown": _shown(texts.MARKDOWN),
    "diagram": lambda rest, results: Text(texts.HOSTILE_DIAGRAM),
    "cjk": _shown(texts.CJK),
}


async def _serve(agent: KeywordAgent) -> None:
    async with await agent.serve() as server:
        print(agent.base_url, flush=True)
        await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    asyncio.run(_serve(KeywordAgent(models=("scripted", "scripted-mini"), port=parser.parse_args().port)))
