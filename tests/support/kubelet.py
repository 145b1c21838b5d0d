"""Runs the pods of the cluster for tests: a container is a process in bubblewrap that sees what the pod mounts, at an address of its own."""

from __future__ import annotations

import base64
import secrets
import socket
import subprocess
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.support.kubernetes_cluster import Cluster

Object = dict[str, Any]
SERVER = Path(__file__).parents[2] / "deploy/sandbox/server.py"
"""The program of the image."""


class Kubelet:
    def __init__(self, cluster: Cluster, claims: Mapping[str, Path]) -> None:
        self.delay = 0.0
        """Seconds that a pod takes to begin."""
        self.ending = 0.0
        """Seconds that a pod takes to end."""
        self.waits_for: tuple[str, str] | None = None
        """Why no container begins: reason and message."""
        self.unschedulable = ""
        """Why no node takes a pod."""
        self.started: list[list[str]] = []
        """Commands of the containers."""
        self._cluster = cluster
        self._claims = claims
        self._addresses: dict[str, str] = {}
        self._processes: list[subprocess.Popen[bytes]] = []
        self._closed = False

    def start(self, pod: Object) -> None:
        threading.Thread(target=self._run, args=(pod["metadata"]["name"], pod["metadata"]["uid"]), daemon=True).start()

    def address(self, pod: Object) -> str:
        parts = (1 + secrets.randbelow(254) for _ in range(3))
        return self._addresses.setdefault(pod["metadata"]["uid"], "127." + ".".join(map(str, parts)))

    def end(self, name: str, reason: str) -> None:
        """End a pod as an eviction does, or a deadline: it has failed and is still there."""
        pod = self._cluster.get("pods", name)
        assert pod is not None
        pod["status"] = {"phase": "Failed", "reason": reason, "message": "for a test"}
        self._cluster.put("pods", pod)

    def close(self) -> None:
        self._closed = True
        for process in self._processes:
            process.kill()
        with self._cluster.changed:
            self._cluster.changed.notify_all()

    def _run(self, name: str, uid: str) -> None:
        time.sleep(self.delay)
        while (pod := self._known(name, uid)) is not None and "deletionTimestamp" not in pod["metadata"]:
            if pod["status"]["phase"] == "Failed":
                pass  # it stays until it is deleted
            elif self.unschedulable:
                false = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
                self._report(pod, conditions=[false | {"message": self.unschedulable}])
            elif reason := self.waits_for or self._missing(pod):
                waiting = {"waiting": {"reason": reason[0], "message": reason[1]}}
                self._report(pod, containerStatuses=[{"name": "sandbox", "state": waiting}])
            else:
                self._serve(pod)
                continue
            self._pause(0.2)
        if pod is not None:
            time.sleep(self.ending)
            self._cluster.remove("pods", name)

    def _known(self, name: str, uid: str) -> Object | None:
        pod = self._cluster.get("pods", name)
        return None if self._closed or pod is None or pod["metadata"]["uid"] != uid else pod

    def _runs(self, name: str, uid: str) -> bool:
        pod = self._known(name, uid)
        return pod is not None and "deletionTimestamp" not in pod["metadata"] and pod["status"]["phase"] != "Failed"

    def _pause(self, seconds: float) -> None:
        with self._cluster.changed:
            self._cluster.changed.wait(seconds)

    def _missing(self, pod: Object) -> tuple[str, str] | None:
        """Return what a container waits for: a secret, or a directory that the real one would make, for root alone."""
        for variable in pod["spec"]["containers"][0]["env"]:
            if "valueFrom" in variable and self._secret(variable) is None:
                return "CreateContainerConfigError", "secret not found"
        for source, _, _ in self._mounts(pod):
            if not source.is_dir():
                return "CreateContainerError", f"failed to create subPath directory for volumeMount: {source}"
        return None

    def _secret(self, variable: Object) -> str | None:
        wanted = variable["valueFrom"]["secretKeyRef"]
        found = self._cluster.get("secrets", wanted["name"])
        return base64.b64decode(found["data"][wanted["key"]]).decode() if found else None

    def _mounts(self, pod: Object) -> list[tuple[Path, str, bool]]:
        volumes = {
            one["name"]: self._claims[one["persistentVolumeClaim"]["claimName"]] for one in pod["spec"]["volumes"]
        }
        return [
            (volumes[one["name"]] / one["subPath"], one["mountPath"], one.get("readOnly", False))
            for one in pod["spec"]["containers"][0]["volumeMounts"]
        ]

    def _serve(self, pod: Object) -> None:
        """Run the container until it ends or its pod is to end."""
        user = str(pod["spec"]["securityContext"]["runAsUser"])
        command = "bwrap --die-with-parent --unshare-pid --unshare-user --cap-drop ALL --ro-bind / / --dev /dev --proc /proc".split()
        command += ["--uid", user, "--gid", user]
        for path in ("/mnt", "/home", "/opt"):
            command += ["--tmpfs", path]
        command += ["--ro-bind", str(SERVER), "/opt/server.py"]
        for source, target, read_only in self._mounts(pod):
            command += ["--ro-bind" if read_only else "--bind", str(source), target]
        command += ["--clearenv", "--setenv", "PATH", "/usr/bin:/bin", "--chdir", "/"]
        for variable in pod["spec"]["containers"][0]["env"]:
            command += ["--setenv", variable["name"], variable.get("value") or self._secret(variable) or ""]
        address = self.address(pod)
        command += ["python3", "-I", "-S", "/opt/server.py", address]
        self.started.append(command)
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        self._processes.append(process)
        ready = False
        while process.poll() is None and self._runs(pod["metadata"]["name"], pod["metadata"]["uid"]):
            if not ready and (ready := _listens(address)):
                state = {"name": "sandbox", "ready": True, "state": {"running": {}}}
                self._report(
                    pod, "Running", containerStatuses=[state], conditions=[{"type": "Ready", "status": "True"}]
                )
            self._pause(0.2 if ready else 0.02)
        process.kill()
        process.wait()

    def _report(self, pod: Object, phase: str = "Pending", **status: Any) -> None:
        with self._cluster.changed:
            now = self._cluster.get("pods", pod["metadata"]["name"])
            if now is None or now["metadata"]["uid"] != pod["metadata"]["uid"]:
                return
            wanted = {"phase": phase, "podIP": self.address(pod), **status}
            if now["status"] != wanted and now["status"].get("phase") != "Failed":
                self._cluster.put("pods", now | {"status": wanted})


def _listens(address: str) -> bool:
    try:
        socket.create_connection((address, 8080), timeout=1).close()
    except OSError:
        return False
    return True
