"""The provisioner over a cluster for tests, served on a port of this machine."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
import yaml
from tests.support.kubernetes_cluster import Cluster, cluster

from deerflow_app.provisioner.app import create_app
from deerflow_app.provisioner.settings import ProvisionerSettings

TOKEN = "provisioner-token-of-many-characters"
MANIFESTS = Path(__file__).parents[2] / "deploy/kubernetes"


def manifests() -> list[dict[str, Any]]:
    """Return the objects of deploy/kubernetes."""
    return [body for file in sorted(MANIFESTS.glob("*.yaml")) for body in yaml.safe_load_all(file.read_text())]


def manifest(kind: str, name: str) -> dict[str, Any]:
    [found] = [one for one in manifests() if (one["kind"], one["metadata"]["name"]) == (kind, name)]
    return found


def settings_for(double: Cluster, **environ: str) -> ProvisionerSettings:
    own = {"PROVISIONER_TOKEN": TOKEN, "K8S_API_SERVER": double.url, "K8S_SERVICE_ACCOUNT": str(double.service_account)}
    return ProvisionerSettings.from_environ(own | environ)


@contextmanager
def provisioner(double: Cluster, patience: float = 20.0, **environ: str) -> Iterator[str]:
    """Serve one, and yield its address."""
    app = create_app(settings_for(double, **environ), patience)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


@contextmanager
def cluster_with_our_role(data: Path, directory: Path) -> Iterator[Cluster]:
    """Serve a cluster whose service account may do what deploy/kubernetes lets it, and whose only volume is ``data``."""
    with cluster(manifest("Role", "provisioner")["rules"], {"deer-flow-data": data}, directory) as double:
        yield double
