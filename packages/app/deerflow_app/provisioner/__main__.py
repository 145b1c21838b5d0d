"""Entry point of ``python -m deerflow_app.provisioner``."""

from __future__ import annotations

import logging
import os
import sys

import uvicorn

from deerflow_app.gateway.settings import SettingsError
from deerflow_app.provisioner.app import create_app
from deerflow_app.provisioner.settings import ProvisionerSettings

PORT = 8002


def main() -> None:
    """Serve until SIGTERM. Exits with 2 if a setting is wrong, with 1 outside of a cluster."""
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    try:
        settings = ProvisionerSettings.from_environ(os.environ)
    except SettingsError as error:
        sys.stderr.write(f"provisioner: {error}\n")
        sys.exit(2)
    try:
        app = create_app(settings)
    except OSError as error:
        sys.exit(
            f"provisioner: no service account in {settings.service_account} ({error.strerror}). "
            "It runs in a pod, with the service account of deploy/kubernetes/provisioner.yaml."
        )
    uvicorn.run(app, host="0.0.0.0", port=PORT, log_level="warning", server_header=False)


if __name__ == "__main__":
    main()
