"""A server that lists whatever a file holds: ``python listing_server.py tools.json``. A call says which tool it was."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

FILE = Path(sys.argv[1])


def answer(method: str, given: dict[str, Any]) -> dict[str, Any] | None:
    match method:
        case "initialize":
            about = {"name": "listing", "version": "1"}
            return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": about}
        case "tools/list":
            return {"tools": json.loads(FILE.read_text())}
        case "tools/call":
            return {"content": [{"type": "text", "text": f"{FILE.stem}: {given['name']}"}]}
    return None


for line in sys.stdin:
    asked = json.loads(line)
    if (number := asked.get("id")) is not None:
        found = answer(asked["method"], asked.get("params") or {})
        said = {"error": {"code": -32601, "message": "no"}} if found is None else {"result": found}
        print(json.dumps({"jsonrpc": "2.0", "id": number, **said}), flush=True)
