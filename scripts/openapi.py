"""Prints the OpenAPI description of the gateway: ``python scripts/openapi.py``."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from deerflow.agents.middlewares.base import ToolFailure
from deerflow.config import ConfigSource, Paths
from deerflow.runtime import Runtime
from deerflow.storage.database import Database
from deerflow_app.gateway.app import add_routes, create_app
from deerflow_app.gateway.settings import GatewaySettings


def description() -> dict[str, Any]:
    """Needs no configuration, and opens nothing."""
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        config = directory / "config.yaml"
        config.write_text("{}")
        settings = GatewaySettings(data_dir=directory, auth_secret="signs nothing: no request is ever answered")
        app = create_app(
            Database(directory / "deerflow.db"), settings, lambda: Runtime(ConfigSource(config), Paths(directory))
        )
        add_routes(app)
        described = app.openapi()
        # Of events, which no route describes: the page words them.
        described["components"]["schemas"]["ToolFailure"] = {"type": "string", "enum": [*ToolFailure]}
        return described


if __name__ == "__main__":
    json.dump(description(), sys.stdout)
