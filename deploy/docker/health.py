"""The container's health: a gateway answers, with its database; a worker touched its file lately."""

import os
import sys
import time
import urllib.request

OLDEST = 30

file = os.environ.get("DEER_FLOW_HEALTH_FILE")
if file:
    sys.exit(time.time() - os.stat(file).st_mtime > OLDEST)  # noqa: PTH116 - without site-packages, as quick as can be
port = os.environ.get("GATEWAY_PORT") or "2026"
urllib.request.urlopen(f"http://127.0.0.1:{port}/api/ok", timeout=4)
