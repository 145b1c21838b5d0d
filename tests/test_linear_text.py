"""Foreign text, 100 kB of the worst, takes linear time wherever a regular expression meets it."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from runpy import run_path

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from tests.support.steps import steps

from deerflow.agents.middlewares.tool_error_handling_middleware import _INVOCATION_ERROR, structure
from deerflow.agents.receipts import claims_of, work_in
from deerflow.agents.transcript import shortened
from deerflow.config.env import read_dotenv, resolve
from deerflow.features.guardrails.uploads_at_risk import destroys_uploads
from deerflow.features.mcp.service import _FLAG, _without_values
from deerflow.features.mcp.wire import mended
from deerflow.features.memory.dates import resolved
from deerflow.features.memory.extraction import Excerpt, learned
from deerflow.features.memory.own_words import quoted
from deerflow.features.skills.parser import InvalidSkillError, Skill, front_matter
from deerflow.features.skills.parser import parse as parse_skill
from deerflow.features.skills.scan import scan_text
from deerflow.features.skills.tools import runs_script_of, script_call
from deerflow.features.suggestions import read_suggestions
from deerflow.features.titles.job import tidy_title
from deerflow.models import demo
from deerflow.models.failures import READ_LIMIT, ErrorKind, classify
from deerflow.models.mindie_provider import FENCED, NUMBER, TAG
from deerflow.models.thoughts import without_thoughts
from deerflow.sandbox.files.tree import GlobPattern
from deerflow.security.addresses import normal_host
from deerflow.security.door import harmless
from deerflow.storage.search import _WORD
from deerflow.storage.tables import utc_now
from deerflow.tools.runners import invocation
from deerflow.tools.shell import _UNRESOLVED as network_pattern
from deerflow.uploads import extract_outline
from deerflow_app.channels.adapters.discord_messages import events
from deerflow_app.channels.adapters.github import GitHub
from deerflow_app.channels.adapters.mail_text import ids, is_automatic, is_proven, own_words, parse, text_of
from deerflow_app.cli.terminal import clean

SIZE = 100_000
parse_number = run_path(str(Path(demo.__file__).with_name("demo_program.txt")))["parse_number"]


class TooSlow(AssertionError):
    """More processor time than a hundred linear passes take."""


@contextmanager
def linear(seconds: float = 2) -> Iterator[None]:
    """Within ``seconds`` of processor time: a linear pass over 100 kB takes some milliseconds, a quadratic one a minute."""

    def over(*_: object) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGVTALRM, over)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _full(pattern: str, size: int = SIZE) -> str:
    return (pattern * size)[:size]


def _demo(text: str) -> None:
    tools = {"bash": {"command": "string"}}
    demo._DemoTurn([HumanMessage("a"), AIMessage("b"), HumanMessage(text)], tools, "").reply()
    demo._DemoTurn([HumanMessage(text)], {}, "").reply()


def _learned(answer: str) -> None:
    with pytest.raises(ValueError):
        learned(f"x{answer}x", Excerpt((), "m"), "t", 0.5, utc_now())


def _skill(text: str) -> None:
    for tools in (text, text[:3_900]):
        front = f"---\nname: a\ndescription: b\nallowed-tools: {tools}\n---\n"
        with suppress(InvalidSkillError):
            parse_skill(front, directory=Path("a"), category="custom", path="a")


def _front(text: str) -> None:
    with suppress(InvalidSkillError):
        front_matter(f"---\n{text}\n---\n")


def _host(text: str) -> None:
    with pytest.raises(ValueError):
        normal_host(text)


def _counted(text: str) -> object:
    tests = invocation("make test")
    assert tests is not None
    return tests.count(text)


def _mail(text: str) -> None:
    own_words(text)
    text_of(parse(f"Content-Type: text/html\n\n{text}".encode()))


def _mail_head(text: str) -> None:
    names = ("Authentication-Results", "References", "Auto-Submitted")
    mail = parse("\n".join(f"{name}: mx; {text}" for name in names).encode())
    is_proven(mail, "a@b.c", "mx"), ids(mail, "references"), is_automatic(mail)


def _discord(text: str) -> None:
    author = {"id": "7", "username": "a"}
    said = {
        "id": "1",
        "channel_id": "1",
        "author": author,
        "content": text,
        "timestamp": "2026-11-26",
        "mentions": [author],
    }
    assert events("MESSAGE_CREATE", said, "900")


def _github(text: str) -> None:
    adapter = GitHub("secret", "", login="deer")
    said = {"id": 1, "body": text, "user": {"id": 1, "login": "a"}, "title": text, "number": 1}
    adapter._events(
        "issue_comment", "1", {"action": "created", "issue": said, "comment": said, "repository": {"full_name": "a/b"}}
    )


def _script(text: str) -> None:
    folder = "/mnt/skills/public/a"
    skill = Skill("a", "b", "public", Path("a"), folder, secrets=("KEY",))
    for command in (text, f"cd {folder}{text}", f"cd a && {text}"):
        script_call(command, [skill])
        runs_script_of(command, [skill])


READERS: dict[str, tuple[Callable[[str], object], list[str]]] = {
    "failures": (lambda text: classify(RuntimeError(text)), ["sk-", "bearer ", "api key ", "insufficient ", "AIza"]),
    "thoughts": (without_thoughts, ["<think>", "<think></think>", "</think>", "◁think▷", "`</think>`"]),
    "test commands": (lambda text: (invocation(text[:1000]), invocation(f"make {text[:900]}")), ["A=", "a/", " a", " -C", "-C ", " -a", "\n", " ", "'", "\\"]),
    "scripts with secrets": (_script, ["\n", "; ", "'", "a ", "\\\n", "cd /mnt/skills/public/a && ", "python ", "a.py"]),
    "names not resolved": (lambda text: network_pattern.search(text), ["failure in ", "unable to ", "could n", "dns "]),
    "lines of servers": (lambda text: mended(text.encode()), ["\\ud83d", "\\", '{"tools":', '"tools"', "["]),
    "settings of skills": (lambda text: _front(text[:7_900]), ["a:", "a: b: c\n", "a:\n  ", "- ", "a: [\n"]),
    "test summaries": (_counted, ["1 a", "1 passed ", "= ", "# pass ", "ok a ", "1", "\x1b[", "1 passed in 1s\n", "Tests: 1 "]),
    "claims": (lambda text: claims_of(work_in([]), text), ["test ", "tests pass", "/mnt/user-data/outputs/", "`", "``` ", ". ", "a", "n't "]),
    "long results": (lambda text: shortened(ToolMessage(text, tool_call_id="1")), ["/", "/.tool-results/", "/a"]),
    "what was learned": (_learned, ["\n", " ", "```", "```\n", "a", "{", '{"a":', '{"newFacts":[']),
    "own words": (lambda text: quoted(["a b", text], [HumanMessage(text)]), ["a ", "'", "'a", "`", "\"", "> ", ". ", "\n", "a.\n"]),
    "dates": (lambda text: resolved(text, utc_now().date()), ["until ", "next ", "bis zum ", "every ", " ", "到", "in 3 "]),
    "secrets": (lambda text: (_FLAG.fullmatch(f"--{text}"), _without_values(f"--{text}"), resolve(text, {})), ["key", "-", "key=", "?key", "${a:-", "$"]),
    "fences": (FENCED.split, ["```", "`", "``` "]),
    "titles": (lambda text: (tidy_title(text, 60), read_suggestions(text)), ["Sure", "Title: ", "here is ", "```", "{", "[", '["a",', "<title>", "# "]),
    "tags": (TAG.findall, ["<function=", "<", "<parameter"]),
    "numbers": (lambda text: (NUMBER.fullmatch(text + "x"), parse_number(text + "x", ",")), ["1", "1.", "1,111", "1e1"]),
    "search": (_WORD.findall, ["a", "_", "a_", "日"]),
    "terminal": (clean, ["a", "a\r", "\r", "\x1b[0", "\x1b]", "\x1bP", "\n"]),
    "cards": (lambda text: re.search(r"^Exit Code: (\d+)\s*\Z", text, re.M), ["Exit Code: 1\n", "Exit Code: 1 "]),
    "unknown arguments": (_INVOCATION_ERROR.fullmatch, ["Error invoking tool '", " with error:"]),
    "demo": (_demo, ["<memory ", "<memory></memory", "</system-a", "- ", "hi ", "title a.", "memory", "create "]),
    "structure": (structure, ["{", "[", '{"a":', "a,", "a\n", "error ", '"', '"\n', "1"]),
    "door": (harmless, ["<", "< ", "[", "[ ", "\n#", "\n ", " ", "  a", "\u0300\u0316", "\U00010a0f\u0301", "\r", "\u200b", "</s", "<<<"]),
    "skills": (_skill, ["a(", "(a", "a(b) ", "a ", "[", "- ", "---", "\n---"]),
    "scans of skills": (
        lambda text: scan_text("a.py", text),
        ["download ", "a.exe ", "run it. ", "never ", "curl -d ", "curl -d '", "requests.post(", ".post()", "1+", "\n\na", "\n", "*"],
    ),
    "hosts": (_host, ["a", "a.", "a-"]),
    "mails": (_mail, ["> ", ">\n", "-", "_", "From: a\n", "a:\n> ", "1:\n", "\n", "<!--", "<p>", "<blockquote>", "</p>", "&", "--\n"]),
    "mail heads": (_mail_head, ["(", ")", '"', "\\", "=", " ", ";", "a=b;", "<a", "=?", "=?a?q?", "<", ",", "a@"]),
    "discord": (_discord, ["<@", "<@1", "@", "<@!7> "]),
    "github": (_github, ["@", "@deer", "`", "```", "``` ", ">", "> \n", "\n"]),
    "globs": (lambda text: GlobPattern("*a*a*a*a*b").step(GlobPattern("*a*a*a*a*b").start(), text[:255]), ["a"]),
}  # fmt: skip


@pytest.mark.parametrize(
    ("reader", "piece"), [(name, piece) for name, (_, pieces) in READERS.items() for piece in pieces]
)
def test_what_reads_foreign_text_does_so_in_linear_time(reader: str, piece: str):
    read, _ = READERS[reader]
    for text in (_full(piece), _full(piece) + "\x01", piece + _full(" ") + "\x01"):
        with linear(0.5):
            read(text)


@pytest.mark.parametrize("line", ["# ", "# x ", "#", " ", "\n", "# x\n", "```\n", "# #", "#\t"])
def test_the_outline_of_any_document_takes_linear_time(tmp_path: Path, line: str):
    document = tmp_path / "a.md"
    for text in (_full(line), f"# x{_full(' ')}y", f"# x{_full(' #')}y", _full(line, 4 << 20)):
        document.write_text(text)
        with linear():
            assert len(extract_outline(document).entries) <= 50


def test_a_file_of_variables_takes_linear_time(tmp_path: Path):
    file = tmp_path / ".env"
    file.write_text(f"A='{_full('${')}'\nB=x\nC=${{B}}y${{NONE:-z}}\n")
    with linear(0.5):
        assert read_dotenv({}, [file])["C"] == "xyz"


COMMANDS = ["|sh", "<<A\n", "<<A ", "A\n<<A\n", "a;", "a ", "a {", "while :;do", '"$(', "`", '"\\"', 'eval "$(', "rm -r a/ ",
            "sudo ", "env ", "a>", "[[ ", "eval - ", "chmod -a ", "\t<", "dd x", "if ", "python -m pip "]  # fmt: skip


@pytest.mark.parametrize("piece", COMMANDS)
def test_what_a_command_destroys_is_found_in_linear_time(piece: str):
    with linear():
        for text in (_full(piece, 9_900), piece + _full(" ", 9_900), f"<<- 'A{_full(piece, 9_900)}"):
            destroys_uploads(text)


@pytest.mark.parametrize("piece", COMMANDS)
def test_four_times_the_command_takes_at_most_four_times_the_steps(piece: str):
    short, long = (steps(lambda size=size: destroys_uploads(_full(piece, size))) for size in (2_400, 9_600))
    assert long <= 4.2 * short + 100


def test_of_an_error_of_any_length_only_the_beginning_is_looked_at():
    far = classify(RuntimeError(_full("x ", READ_LIMIT) + "insufficient quota"))
    near = classify(RuntimeError(_full("x ", READ_LIMIT - 20) + "insufficient quota"))
    assert (far.kind, near.kind) == (ErrorKind.GENERIC, ErrorKind.QUOTA)
