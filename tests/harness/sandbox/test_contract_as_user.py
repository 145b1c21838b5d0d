"""Where the tests run as root: the contract suite once more as an ordinary user, who has no root launcher to help."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from tests.contracts.sandbox.environment import TIGHT

ROOT = Path(__file__).parents[3]
AS_USER = ROOT / "tests/support/as_user.py"
UIDS = {"bwrap-": 54_321, "landlock-30.2": 54_322, "userns-": 54_323, "noproc-": 54_324, "landlock-": 54_325}
"""One for each: the limit of a user's processes counts those of all tests that run as that user."""

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="test_contract itself ran as an ordinary user")


@pytest.fixture
def home(checks: str) -> Iterator[Path]:
    directory = Path(tempfile.mkdtemp(prefix="deerflow-user-", dir="/var/tmp"))
    shutil.chown(directory, UIDS[checks], UIDS[checks])
    yield directory
    subprocess.run(["rm", "-rf", "--", str(directory)], check=True)


@pytest.fixture
def others(checks: str) -> Iterator[None]:
    """The user runs more processes already than a sandbox of theirs may have."""
    uid, many = UIDS[checks], 2 * TIGHT.processes
    with ExitStack() as stack:
        for _ in range(many):
            stack.enter_context(ended(subprocess.Popen(["sleep", "600"], user=uid, group=uid, extra_groups=[])))
        yield


@contextmanager
def ended(process: subprocess.Popen[bytes]) -> Iterator[None]:
    try:
        yield
    finally:
        process.kill()
        process.wait()


@pytest.mark.usefixtures("others")
@pytest.mark.parametrize(
    "checks",
    [
        "bwrap-",
        *(
            pytest.param(name, marks=pytest.mark.nightly)
            for name in ("landlock-30.2", "userns-", "noproc-", "landlock-")
        ),
    ],
)
def test_an_ordinary_user_gets_the_same_sandbox(checks: str, home: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment |= {"HOME": str(home), "USER": "somebody", "TMPDIR": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
    run = subprocess.run(
        [
            sys.executable, str(AS_USER), str(UIDS[checks]), sys.base_prefix, sys.prefix, str(ROOT), "--",
            sys.executable, "-m", "pytest", "tests/harness/sandbox/test_contract.py", "-k", checks, "-q",
            "--no-header", "--tb=short", "-p", "no:cacheprovider", f"--basetemp={home}/pytest",
        ],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    sys.stdout.write(run.stdout)
    if run.returncode == 0 and " passed" not in run.stdout:
        pytest.skip(run.stdout.strip().splitlines()[-1])
    assert run.returncode == 0, run.stdout[-8000:] + run.stderr[-2000:]
    assert " passed" in run.stdout
