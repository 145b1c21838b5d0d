"""A cluster of Kubernetes for tests: its API over real HTTPS, and a kubelet that runs the pods on this machine.

As the real one it admits a service account by its token, allows what its role allows, refuses what no schema or the standard
"restricted" of pod security knows, collects what has lost its owner, and lets watches expire. Objects are those of one namespace.
"""

from __future__ import annotations

import json
import re
import secrets
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.support.certificates import issued
from tests.support.kubelet import Kubelet
from tests.support.kubernetes_schemas import faults

Object = dict[str, Any]
NAMESPACE = "deer-flow"
GROUPS = {"pods": "", "services": "", "secrets": "", "networkpolicies": "networking.k8s.io"}
ROUTE = re.compile(
    r"/(?:api/v1|apis/(?P<group>[a-z.0-9]+)/v1)/namespaces/(?P<namespace>[^/]+)/(?P<kind>[a-z]+)(?:/(?P<name>[^/]+))?"
)


class Refusal(Exception):
    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "reason": reason}
        self.body |= {"code": status}
        self.status = status


class Cluster:
    """``role``: the rules of the service account's Role. Public attributes are set by tests to make it behave badly."""

    def __init__(self, role: list[Object], claims: Mapping[str, Path], directory: Path) -> None:
        self.role = role
        self.kubelet = Kubelet(self, claims)
        self.service_account = directory / "serviceaccount"
        self.url = ""
        self.used: set[tuple[str, str]] = set()
        """Verbs and kinds that were asked for."""
        self.answers: list[tuple[int, str]] = []
        """Refusals of the next requests, before anything is looked at."""
        self.expired = 0
        """Watches that find their version forgotten."""
        self.broken = 0
        """Watches that break off in the middle of an event."""
        self.changed = threading.Condition(threading.RLock())
        self._objects: dict[tuple[str, str], Object] = {}
        self._events: list[tuple[int, str, str, Object]] = []
        self._version = 100
        self.rotate_token()

    def rotate_token(self) -> None:
        """Give the service account another token, as the kubelet does every hour."""
        self.token = secrets.token_hex(16)
        self.service_account.mkdir(exist_ok=True)
        (self.service_account / "token").write_text(f"{self.token}\n")

    # what there is ---------------------------------------------------------------------------------------------------

    def all(self, kind: str) -> list[Object]:
        with self.changed:
            return [deepcopy(one) for (of, _), one in self._objects.items() if of == kind]

    def get(self, kind: str, name: str) -> Object | None:
        with self.changed:
            return deepcopy(self._objects.get((kind, name)))

    def put(self, kind: str, body: Object) -> Object:
        """Store an object, new or changed, and let watches know."""
        with self.changed:
            key, known = (kind, body["metadata"]["name"]), (kind, body["metadata"]["name"]) in self._objects
            body = deepcopy(body)
            body["metadata"] |= {"namespace": NAMESPACE}
            body["metadata"].setdefault("uid", secrets.token_hex(8))
            self._objects[key] = body
            self._publish(kind, "MODIFIED" if known else "ADDED", body)
            return deepcopy(body)

    def remove(self, kind: str, name: str) -> None:
        """Remove an object, and what it owns."""
        with self.changed:
            if (gone := self._objects.pop((kind, name), None)) is None:
                return
            self._publish(kind, "DELETED", gone)
            for (of, other), body in [*self._objects.items()]:
                owners = [one["uid"] for one in body["metadata"].get("ownerReferences", ())]
                if owners == [gone["metadata"]["uid"]]:
                    self.remove(of, other)

    def _publish(self, kind: str, event: str, body: Object) -> None:
        self._version += 1
        body["metadata"]["resourceVersion"] = str(self._version)
        self._events.append((self._version, kind, event, deepcopy(body)))
        self.changed.notify_all()

    # requests --------------------------------------------------------------------------------------------------------

    def answer(
        self, method: str, target: str, token: str, content_type: str, body: Object
    ) -> tuple[int, Object] | Iterator[Object]:
        """Return status and body, or what a watch sees. Raises Refusal."""
        url = urlsplit(target)
        query = dict(parse_qsl(url.query))
        if token != f"Bearer {self.token}":
            raise Refusal(401, "Unauthorized", "Unauthorized")
        if self.answers:
            status, reason = self.answers.pop(0)
            raise Refusal(status, reason, f"{reason}, for a test")
        found = ROUTE.fullmatch(url.path)
        if found is None or GROUPS.get(found["kind"]) != (found["group"] or ""):
            raise Refusal(404, "NotFound", "the server could not find the requested resource")
        kind, name = found["kind"], found["name"] or ""
        verb = {"POST": "create", "PATCH": "patch", "DELETE": "delete", "GET": "get" if name else "list"}[method]
        if verb == "list" and query.get("watch") == "true":
            verb = "watch"
        self._authorize(verb, kind, name, found["namespace"])
        with self.changed:
            match verb:
                case "create":
                    return 201, self._create(kind, body)
                case "patch":
                    return 200, self._apply(kind, name, query, content_type, body)
                case "delete":
                    return 200, self._delete(kind, name, body)
                case "get":
                    return 200, self._found(kind, name)
                case "list":
                    items = [one for one in self.all(kind) if _matches(one, query)]
                    return 200, {"kind": "List", "items": items, "metadata": {"resourceVersion": str(self._version)}}
        return self._events_for(kind, query)

    def _events_for(self, kind: str, query: Mapping[str, str]) -> Iterator[Object]:
        version, until = int(query["resourceVersion"]), time.monotonic() + float(query["timeoutSeconds"])
        if self.expired:
            self.expired -= 1
            gone = Refusal(410, "Expired", f"too old resource version: {version} ({self._version})")
            yield {"type": "ERROR", "object": gone.body}
            return
        while (left := until - time.monotonic()) > 0:
            with self.changed:
                news = [one for one in self._events if one[0] > version and one[1] == kind and _matches(one[3], query)]
                if not news:
                    self.changed.wait(left)
            for number, _, event, body in news:
                version = number
                yield {"type": event, "object": body}

    def _authorize(self, verb: str, kind: str, name: str, namespace: str) -> None:
        self.used.add((verb, kind))
        allowed = any(
            verb in rule["verbs"]
            and kind in rule["resources"]
            and GROUPS[kind] in rule["apiGroups"]
            and name in rule.get("resourceNames", [name])
            for rule in self.role
        )
        if not allowed or namespace != NAMESPACE:
            user = f'User "system:serviceaccount:{NAMESPACE}:provisioner"'
            what = f'cannot {verb} resource "{kind}" in API group "{GROUPS[kind]}" in the namespace "{namespace}"'
            raise Refusal(403, "Forbidden", f"{kind} is forbidden: {user} {what}")

    def _create(self, kind: str, body: Object) -> Object:
        name = body["metadata"]["name"]
        _check(body)
        if (kind, name) in self._objects:
            raise Refusal(409, "AlreadyExists", f'{kind} "{name}" already exists')
        if kind == "pods":
            restricted(body["spec"])
            body = body | {"status": {"phase": "Pending"}}
        made = self.put(kind, body)
        if kind == "pods":
            self.kubelet.start(made)
        return made

    def _apply(self, kind: str, name: str, query: Mapping[str, str], content_type: str, body: Object) -> Object:
        if content_type != "application/apply-patch+yaml" or not query.get("fieldManager"):
            raise Refusal(400, "BadRequest", "an apply patch has a content type and a manager")
        if body["metadata"]["name"] != name:
            raise Refusal(400, "BadRequest", "the name of the object does not match the name on the URL")
        _check(body)
        old = self._objects.get((kind, name))
        if (
            old
            and body["metadata"].get("resourceVersion", old["metadata"]["resourceVersion"])
            != old["metadata"]["resourceVersion"]
        ):
            raise Refusal(
                409, "Conflict", f'Operation cannot be fulfilled on {kind} "{name}": the object has been modified'
            )
        if old is None:
            self._authorize("create", kind, "", NAMESPACE)
        else:
            body["metadata"] |= {"uid": old["metadata"]["uid"]}
        if kind == "services":
            body["spec"]["clusterIP"] = self._address(body["spec"]["selector"])
        return self.put(kind, body)

    def _delete(self, kind: str, name: str, body: Object) -> Object:
        _check(body)
        found = self._found(kind, name)
        if body.get("preconditions", {}).get("uid", found["metadata"]["uid"]) != found["metadata"]["uid"]:
            raise Refusal(409, "Conflict", f'Operation cannot be fulfilled on {kind} "{name}": the UID does not match')
        if kind != "pods":
            self.remove(kind, name)
        elif "deletionTimestamp" not in found["metadata"]:
            found["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
            self.put(kind, found)  # the kubelet sees it, ends the pod and removes it
        return found

    def _found(self, kind: str, name: str) -> Object:
        if (found := self.get(kind, name)) is None:
            raise Refusal(404, "NotFound", f'{kind} "{name}" not found')
        return found

    def _address(self, selector: Mapping[str, str]) -> str:
        """Return the address of a service: here that of its pod, since nothing translates between them."""
        for pod in self.all("pods"):
            if selector.items() <= pod["metadata"]["labels"].items():
                return self.kubelet.address(pod)
        return "127.255.255.254"


def restricted(spec: Object) -> None:
    """Refuse a pod outside of https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted."""
    shared, kinds = (
        spec.get("securityContext", {}),
        {"persistentVolumeClaim", "emptyDir", "secret", "configMap", "projected"},
    )
    bad = [name for name in ("hostNetwork", "hostPID", "hostIPC") if spec.get(name)]
    bad += [f"volume {one['name']}" for one in spec.get("volumes", ()) if not kinds & one.keys()]
    for container in (*spec["containers"], *spec.get("initContainers", ())):
        own = shared | container.get("securityContext", {})
        wanted = {"allowPrivilegeEscalation": False, "runAsNonRoot": True, "capabilities": {"drop": ["ALL"]}}
        bad += [f"{container['name']}: {name}" for name, value in wanted.items() if own.get(name) != value]
        bad += [f"{container['name']}: runs as root"] * (own.get("runAsUser") == 0 or bool(own.get("privileged")))
        if own.get("seccompProfile", {}).get("type") not in ("RuntimeDefault", "Localhost"):
            bad.append(f"{container['name']}: seccompProfile")
    if bad:
        raise Refusal(403, "Forbidden", f'violates PodSecurity "restricted:latest": {", ".join(bad)}')


def _check(body: Object) -> None:
    if found := faults(body):
        raise Refusal(422, "Invalid", "; ".join(found))


def _matches(body: Object, query: Mapping[str, str]) -> bool:
    wanted = dict(part.split("=", 1) for part in query.get("labelSelector", "").split(",") if part)
    return wanted.items() <= body["metadata"].get("labels", {}).items()


def _handler(cluster: Cluster) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _handle(self) -> None:
            size = int(self.headers["Content-Length"] or 0)
            given = json.loads(self.rfile.read(size) or "{}")
            arguments = self.headers.get("Authorization", ""), self.headers.get("Content-Type", "")
            try:
                answer = cluster.answer(self.command, self.path, *arguments, given)
            except Refusal as refusal:
                answer = refusal.status, refusal.body
            if not isinstance(answer, tuple):
                return self._stream(answer)
            status, body = answer
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def _stream(self, events: Iterator[Object]) -> None:
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.close_connection = True
            if cluster.broken:
                cluster.broken -= 1
                self.wfile.write(b'ff\r\n{"type": "MODI')
                return
            try:
                for event in events:
                    line = json.dumps(event).encode() + b"\n"
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
                self.wfile.write(b"0\r\n\r\n")
            except OSError:
                pass  # the client has seen enough

        do_GET = do_POST = do_PATCH = do_DELETE = _handle

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler


@contextmanager
def cluster(role: list[Object], claims: Mapping[str, Path], directory: Path) -> Iterator[Cluster]:
    """Serve a cluster on a port of this machine. ``claims``: the directories that are its volumes, by the names of their claims."""
    double = Cluster(role, claims, directory)
    key, authority = issued("localhost", directory)
    (double.service_account / "ca.crt").write_bytes(authority.read_bytes())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(key)
    ThreadingHTTPServer.daemon_threads = True
    with ThreadingHTTPServer(("127.0.0.1", 0), _handler(double)) as server:
        # The handshake belongs to the thread of the connection.
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        double.url = f"https://localhost:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        yield double
        double.kubelet.close()
        server.shutdown()
        thread.join()
