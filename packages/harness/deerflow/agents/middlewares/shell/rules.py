"""What a single call, redirection or definition does that somebody should know."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator

from deerflow.agents.middlewares.shell.calls import (
    SHELLS,
    Call,
    brings_foreign_text,
    calls,
    inline_code,
    is_interpreter,
    reads_code_from_stdin,
    unwrap,
)
from deerflow.agents.middlewares.shell.finding import Finding, block, warn
from deerflow.agents.middlewares.shell.paths import DISK, SECRET_FILE, guarded, is_vital
from deerflow.agents.middlewares.shell.tree import Command, Redirect, Script, Word

# rules about text -----------------------------------------------------------------------------------------------------


def redirections(command: Command) -> Iterator[Finding]:
    for redirect in command.redirects:
        if finding := _redirection(redirect):
            yield finding


def _redirection(redirect: Redirect) -> Finding | None:
    target = redirect.target
    if redirect.operator in ("<<", "<<-", "<<<"):
        return None
    if re.match(r"/dev/(tcp|udp)/", target.text):
        return block("network-redirect", f"redirecting to {target.text} opens a raw network connection")
    if redirect.writes and (kind := guarded(target)):
        return block("protected-file", f"writing to {target.text}, {kind}")
    return _secret(target)


def _secret(word: Word) -> Finding | None:
    match = SECRET_FILE.search(word.text)
    return block("secret-file", f"reading {match[0]}") if match else None


def variables(assignments: list[tuple[str, Word]]) -> Iterator[Finding]:
    for name, _ in assignments:
        if finding := _variable(name):
            yield finding


def _variable(name: str) -> Finding | None:
    if name in ("LD_PRELOAD", "LD_LIBRARY_PATH"):
        return block("library-injection", f"setting {name} replaces libraries of the programs that run")
    return warn("path-change", "PATH= changes which programs later commands find") if name == "PATH" else None


def bombs(script: Script) -> Iterator[Finding]:
    for function in script.functions:
        if any(command.background and _calls_function(command, function.name) for command in function.commands):
            yield block("fork-bomb", f"the function {function.name} starts itself in the background without end")
    for loop in script.loops:
        endless = [command.words[0].text for command in loop.condition if command.words] in (["true"], [":"], ["(("])
        if endless and loop.body and loop.body[-1].background:
            yield block("fork-bomb", "an endless loop that starts background processes")


def _calls_function(command: Command, name: str) -> bool:
    return any(member.words and member.words[0].text == name for member in (*command.upstream, command))


# rules about calls ----------------------------------------------------------------------------------------------------


def _recursive_delete(call: Call) -> Finding | None:
    if call.name != "rm":
        return None
    if "--no-preserve-root" in call.arguments:
        return block("recursive-delete", "rm --no-preserve-root")
    if not call.has_flag("rR", "--recursive"):
        return None
    target = next((word.text for word in call.operands if is_vital(word)), None)
    return block("recursive-delete", f"rm -r of {target}: name the files or directories below it") if target else None


def _find_delete(call: Call) -> Finding | None:
    if call.name != "find":
        return None
    deletes = "-delete" in call.arguments or re.search(
        r"-exec(dir)? (/bin/)?(rm|shred|unlink) ", " ".join(call.arguments)
    )
    if not deletes:
        return None
    starts: list[Word] = []
    for word in call.words:
        if word.text.startswith(("-", "(", "!")):
            break
        starts.append(word)
    filtered = any(
        re.match(r"-i?(name|path|regex)$|-(mtime|mmin|newer|size|empty|user)", argument) for argument in call.arguments
    )
    target = next((w.text for w in starts if is_vital(w) and (not filtered or posixpath.normpath(w.text) == "/")), None)
    return block("recursive-delete", f"find {target} deletes what it finds there: start below it") if target else None


def _disk_tools(call: Call) -> Finding | None:
    if re.fullmatch(r"mkfs(\..+)?|mke2fs|wipefs|mkswap", call.name):
        return block("disk-format", f"{call.name} formats a disk")
    if call.name == "dd":
        for argument in call.arguments:
            key, _, path = argument.partition("=")
            if key in ("if", "of") and DISK.match(path):
                return block("raw-disk", f"dd on {path}, a disk device")
            if key == "of" and (kind := guarded(Word(path))):
                return block("protected-file", f"dd writes to {path}, {kind}")
    if call.name == "shred" and any(DISK.match(argument) for argument in call.arguments):
        return block("raw-disk", "shred on a disk device")
    return None


def _secret_files(call: Call) -> Finding | None:
    if call.name in ("echo", "printf", "eval"):
        return None
    words = (
        call.operands[1:] if call.name in ("grep", "egrep", "rg", "sed", "awk") and call.operands else list(call.words)
    )
    if call.name in SHELLS:
        words = [word for word in words if word is not inline_code(call)]
    return next((finding for word in words if (finding := _secret(word))), None)


def _protected_files(call: Call) -> Finding | None:
    targets: list[Word] = []
    if call.name in ("tee", "truncate", "chattr"):
        targets = call.operands
    elif call.name in ("cp", "mv", "ln", "install", "rsync"):
        targets = call.operands[-1:]
    elif call.name in ("sed", "perl") and call.has_flag("i", "--in-place"):
        targets = call.operands
    for word in targets:
        if kind := guarded(word):
            return block("protected-file", f"{call.name} writes to {word.text}, {kind}")
    return None


def _piped_code(call: Call) -> Finding | None:
    """``... | sh``, and downloaded or decoded text into any interpreter."""
    if not is_interpreter(call.name) or not reads_code_from_stdin(call):
        return None
    for redirect in call.command.redirects:
        if redirect.operator in ("<", "<<<") and _has_foreign_text(redirect.target):
            return block(
                "remote-code", f"{call.name} runs text that was downloaded or decoded and that nobody has read"
            )
    if not call.command.upstream:
        return None
    sources = [source for command in call.command.upstream if (source := unwrap(command)) is not None]
    if any(brings_foreign_text(source) for source in sources):
        return block(
            "remote-code",
            f"a pipe into {call.name} runs downloaded or decoded text: save it to a file, read it, then run it",
        )
    if call.name in SHELLS:
        return block("pipe-to-shell", f"a pipe into {call.name} runs whatever comes: write a script file and run that")
    return None


def _substituted_code(call: Call) -> Finding | None:
    """``eval "$(curl ...)"``, ``bash <(curl ...)``, ``$(curl ...)`` as the command itself."""
    head = call.command.words[0]
    if head.scripts and any(_makes_code(script) for script in head.scripts):
        return block(
            "remote-code", "the output of a substitution is run as a command: look at it first, then run what you mean"
        )
    code: list[Word] = []
    if call.name in ("eval", "source", "."):
        code = list(call.words)
    elif is_interpreter(call.name):
        inline = inline_code(call)
        code = [inline] if inline else call.operands[:1]
    if any(_has_foreign_text(word) for word in code):
        return block(
            "remote-code",
            f"{call.name} runs text that was downloaded or decoded: save it to a file, read it, then run it",
        )
    return None


def _makes_code(script: Script) -> bool:
    return any(
        is_interpreter(call.name) or brings_foreign_text(call) or call.name == "base64" for call in calls(script)
    )


def _has_foreign_text(word: Word) -> bool:
    return any(brings_foreign_text(call) for script in (*word.scripts, *word.processes) for call in calls(script))


_REVERSE_SHELL_CODE = re.compile(
    r"socket.*(dup2|pty\.spawn|(call|Popen|run|system)\(\[?[\"']+/?(usr/)?(bin/)?(ba|z|da)?sh)|"
    r"fsockopen.*(exec|proc_open|shell_exec|passthru|system)|TCPSocket.*(exec|popen|/bin/)|Socket.*exec\s*[({]?[\"']?/bin/|"
    r"net\.(connect|Socket).*(spawn|exec)",
    re.DOTALL | re.IGNORECASE,
)


def _reverse_shell(call: Call) -> Finding | None:
    words = " ".join(call.arguments)
    if re.fullmatch(r"nc|ncat|netcat|nc\.\w+", call.name):
        shell = call.has_flag("e", "--exec", "--sh-exec") or (call.name == "ncat" and call.has_flag("c"))
    elif call.name == "socat":
        shell = re.search(r"\b(exec|system):", words, re.IGNORECASE) is not None
    elif call.name in ("awk", "gawk"):
        shell = "/inet/tcp/" in words
    elif call.name not in SHELLS and is_interpreter(call.name):
        shell = _REVERSE_SHELL_CODE.search(words) is not None
    else:
        shell = False
    if shell:
        return block("reverse-shell", f"{call.name} connects a shell to the network")
    if call.name not in ("echo", "printf", "grep", "rg", *SHELLS) and re.search(
        r"/dev/(tcp|udp)/", " ".join([call.name, words, *_head(call)])
    ):
        return block("network-redirect", "/dev/tcp opens a raw network connection")
    return None


def _head(call: Call) -> list[str]:
    return [call.command.words[0].text] if call.command.words else []


def _exported(call: Call) -> Finding | None:
    if "env" not in call.wrappers and call.name not in ("export", "declare", "typeset", "local", "readonly", "env"):
        return None
    for word in (*call.command.words, *call.words):
        if (match := re.match(r"([A-Za-z_]\w*)=", word.text)) and (finding := _variable(match[1])):
            return finding
    return None


def _privileges(call: Call) -> Finding | None:
    name = next((name for name in (*call.wrappers, call.name) if name in ("sudo", "su", "doas")), None)
    return warn("privileges", f"{name} has no effect here or changes who acts: work without it") if name else None


def _installs(call: Call) -> Finding | None:
    arguments = call.arguments
    name = call.name
    if re.fullmatch(r"python[\d.]*", name) and arguments[:2] == ["-m", "pip"]:
        name, arguments = "pip", arguments[2:]
    if re.fullmatch(r"pip[\d.]*|apt|apt-get", name) and "install" in arguments:
        return warn("install", f"{name} install changes the environment of later commands")
    return None


def _permissions(call: Call) -> Finding | None:
    if call.name == "chmod" and any(re.fullmatch(r"0?777|[ugo]*a?\+rwx", word.text) for word in call.operands[:1]):
        return warn("permissions", "chmod 777 lets everybody change the files: grant less")
    return None


CALL_RULES: tuple[Callable[[Call], Finding | None], ...] = (
    _recursive_delete,
    _find_delete,
    _disk_tools,
    _secret_files,
    _protected_files,
    _piped_code,
    _substituted_code,
    _reverse_shell,
    _exported,
    _privileges,
    _installs,
    _permissions,
)
