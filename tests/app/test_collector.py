"""The garbage collector of servers; in a process of its own, which it concerns as a whole."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import gc, threading
from deerflow_app.cli.commands.server import THRESHOLDS, collect_seldom
kept = [[number] for number in range(1000)]
collect_seldom("decimal")
for thread in threading.enumerate():
    if thread.name == "collector":
        thread.join()
import sys
assert "decimal" in sys.modules
assert gc.get_threshold() == THRESHOLDS and gc.isenabled()
assert gc.get_freeze_count() > 1000 and not any(kept[7] is one for one in gc.get_objects())
class Knot:
    pass
knot = Knot()
knot.itself = knot
import weakref
seen = weakref.ref(knot)
del knot
gc.collect()
assert seen() is None
"""


def test_what_is_there_is_set_aside_and_new_garbage_is_still_found():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
