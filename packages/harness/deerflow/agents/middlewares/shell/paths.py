"""Which files a command had better leave alone."""

from __future__ import annotations

import posixpath
import re

from deerflow.agents.middlewares.shell.tree import Word

_VITAL = frozenset(
    [
        "/",
        "/home",
        "/root",
        "/etc",
        "/usr",
        "/bin",
        "/sbin",
        "/lib",
        "/lib64",
        "/var",
        "/boot",
        "/dev",
        "/proc",
        "/sys",
        "/opt",
        "/srv",
        "/mnt",
        "/mnt/user-data",
        "/mnt/user-data/uploads",
        "/mnt/skills",
        "~",
        "~root",
        "$HOME",
        "${HOME}",
    ]
)
_SYSTEM_FILE = re.compile(r"/(etc|bin|sbin|boot|usr/(local/)?s?bin)/.")
_RC_FILE = re.compile(
    r"(~\w*|\$HOME|\$\{HOME\}|/root|/home/[^/]+)/?\.(bashrc|profile|zshrc|bash_profile|bash_login|zprofile|zshenv|ssh/authorized_keys)"
)
DISK = re.compile(r"/dev/(sd|hd|vd|xvd|nvme|mmcblk|mapper/|disk/|mem|kmem|port)")
SECRET_FILE = re.compile(r"/etc/g?shadow\b|/proc/[^/\s'\"]+/environ\b")


def is_vital(word: Word) -> bool:
    """Whether a path, or all that is in it, is the system's or the user's whole data."""
    text = word.text
    if text.startswith("~") and word.quoted:
        return False
    if text.startswith("/{"):
        return True
    text = re.sub(r"/(\*|\.\*|\.\[.*\]\*|\{\*,\.\*\})$", "/", text)
    path = posixpath.normpath(text) if text else text
    return ("/" + path.lstrip("/") if path.startswith("/") else path) in _VITAL


def guarded(word: Word) -> str:
    """What kind of file a path is, if nobody should write it."""
    text = posixpath.normpath(word.text) if word.text.startswith("/") else word.text
    if _SYSTEM_FILE.match(text):
        return "a system file"
    if _RC_FILE.match(text) and not (word.quoted and text.startswith("~")):
        return "a shell start-up file"
    return "a disk device" if DISK.match(text) else ""
