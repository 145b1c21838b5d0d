"""Packages of suites that node runs, installed once per lock file, outside of the checkout."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "deerflow-tests"


def installed(suite: Path, *other: str) -> Path:
    """A folder whose ``node_modules`` hold what the suite's lock file names; with ``other`` versions (``name@1.2``) in their place."""
    if not (shutil.which("node") and shutil.which("npm")):
        pytest.skip("node and npm (20 or newer) are needed for the suites in JavaScript.")
    wanted = (suite / "package-lock.json").read_bytes() + " ".join(other).encode()
    folder = CACHE / f"{suite.name}-{hashlib.sha256(wanted).hexdigest()[:16]}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        if not (folder / "node_modules").is_dir():
            with tempfile.TemporaryDirectory(dir=CACHE) as making:
                for name in ("package.json", "package-lock.json"):
                    shutil.copy(suite / name, making)
                npm = ["npm", *(["install", *other] if other else ["ci"]), "--legacy-peer-deps"]
                npm += ["--no-audit", "--no-fund", "--ignore-scripts"]
                made = subprocess.run(npm, cwd=making, capture_output=True, text=True, timeout=600)
                assert made.returncode == 0, f"npm failed:\n{made.stdout}\n{made.stderr}"
                folder.mkdir(exist_ok=True)
                Path(making, "node_modules").rename(folder / "node_modules")
    return folder
