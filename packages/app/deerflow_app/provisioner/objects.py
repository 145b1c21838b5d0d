"""The Kubernetes objects of a sandbox, as pure functions of settings and ids."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import Any

from deerflow.config.paths import Paths
from deerflow.sandbox.interface import ACP_WORKSPACE, OUTPUTS, SKILLS, UPLOADS, WORKSPACE
from deerflow.sandbox.isolation.plan import HOME
from deerflow_app.provisioner.kubernetes import Object
from deerflow_app.provisioner.settings import ProvisionerSettings

PORT = 8080
UID = 10001
"""The user of DeerFlow's image, too: the files of a thread belong to both."""
APP = "deer-flow-sandbox"
APP_LABEL, ID_LABEL, MAKING_LABEL = "app", "deerflow/sandbox", "deerflow/making"
CLIENT_LABEL = "deerflow/uses-sandboxes"
"""Label of the pods that may speak to sandboxes: ``"true"``."""
THREAD_NOTE, USER_NOTE = "deerflow/thread", "deerflow/user"
OWNER_NOTE = "deerflow/owner"
"""Annotation of a service: the process of DeerFlow that asked for the sandbox last."""
LEASE_NOTE = "deerflow/lease"
"""Annotation of a service: until when that process is taken to be alive, in seconds since 1970."""

_DATA = Paths("/", environ={})
"""The data directory, as the root of its volume."""
_THREAD_PARTS = (
    (Paths.workspace, WORKSPACE),
    (Paths.uploads, UPLOADS),
    (Paths.outputs, OUTPUTS),
    (Paths.home, HOME),
    (Paths.tmp, "/tmp"),
)
"""Each is mounted by itself: in a folder around them, a sandbox could replace one by a link to elsewhere."""


def pod(settings: ProvisionerSettings, sandbox_id: str, thread_id: str, user_id: str) -> Object:
    """Return the pod of a thread. Raises ValueError for an id that may not be part of a path."""
    mounts, volumes = _mounts(settings, thread_id, user_id)
    container = {
        "name": "sandbox",
        "image": settings.image,
        "imagePullPolicy": "IfNotPresent",
        "ports": [{"name": "http", "containerPort": PORT}],
        "env": [
            {"name": "HOME", "value": HOME},
            {"name": "SANDBOX_API_KEY", "valueFrom": {"secretKeyRef": {"name": pod_name(sandbox_id), "key": "key"}}},
        ],
        "resources": {
            "requests": {"cpu": "100m", "memory": "256Mi", "ephemeral-storage": "100Mi"},
            "limits": {"cpu": settings.cpu, "memory": settings.memory, "ephemeral-storage": "500Mi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "privileged": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": mounts,
        # Not over HTTP: whether that needs the key is the image's to say.
        "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 1},
    }
    spec: dict[str, Any] = {
        "restartPolicy": "Always",
        "activeDeadlineSeconds": settings.lifetime,
        "terminationGracePeriodSeconds": 1,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "shareProcessNamespace": True,  # the first process is Kubernetes' own, which reaps what is left behind
        "hostname": "sandbox",
        # Its network is closed: names fail at once instead of after seconds.
        "dnsPolicy": "None",
        "dnsConfig": {"nameservers": ["127.0.0.1"]},
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": UID,
            "runAsGroup": UID,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": volumes,
    }
    if settings.runtime_class:
        spec["runtimeClassName"] = settings.runtime_class
    if settings.pull_secret:
        spec["imagePullSecrets"] = [{"name": settings.pull_secret}]
    labels = _labels(sandbox_id) | {MAKING_LABEL: _sign(settings, json.dumps([thread_id, user_id, spec]))[:32]}
    notes = {THREAD_NOTE: thread_id, USER_NOTE: user_id}
    metadata = {"name": pod_name(sandbox_id), "labels": labels, "annotations": notes}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def service(sandbox_id: str, pod: Object, owner: str, until: float) -> Object:
    """Return the address of a pod inside of the cluster, which also notes whose the pod is, and until when."""
    return _service(_owned(f"{pod_name(sandbox_id)}-svc", pod), owner, until)


def renewed(service: Object, until: float) -> Object:
    """Return a service with another lease. It is refused if the service has changed since: then it may be another owner's."""
    metadata = {key: service["metadata"][key] for key in ("name", "labels", "ownerReferences", "resourceVersion")}
    return _service(metadata, service["metadata"]["annotations"][OWNER_NOTE], until)


def _service(metadata: Object, owner: str, until: float) -> Object:
    port = {"name": "http", "protocol": "TCP", "port": PORT}
    spec = {"type": "ClusterIP", "selector": _labels(metadata["labels"][ID_LABEL]), "ports": [port]}
    notes = {OWNER_NOTE: owner, LEASE_NOTE: str(round(until))}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata | {"annotations": notes}, "spec": spec}


def secret(settings: ProvisionerSettings, sandbox_id: str, owner: Object) -> Object:
    """Return the secret that holds the key of a pod."""
    data = {"key": base64.b64encode(api_key(settings, owner).encode()).decode()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": _owned(pod_name(sandbox_id), owner), "data": data}


def network_policy() -> Object:
    """Return the policy that closes the network of all sandboxes: nothing goes out, and only DeerFlow's requests come in."""
    clients = {"podSelector": {"matchLabels": {CLIENT_LABEL: "true"}}}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": APP, "labels": {APP_LABEL: APP}},
        "spec": {
            "podSelector": {"matchLabels": {APP_LABEL: APP}},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"from": [clients], "ports": [{"protocol": "TCP", "port": PORT}]}],
            "egress": [],
        },
    }


def api_key(settings: ProvisionerSettings, pod: Object) -> str:
    """Return the key of one pod. It ends with it, and needs no place to be kept."""
    return _sign(settings, f"{settings.namespace}/{pod['metadata']['uid']}")


def pod_name(sandbox_id: str) -> str:
    return f"sandbox-{sandbox_id}"


def selector(sandbox_id: str = "") -> str:
    """Return the label selector of one sandbox's objects, or of all."""
    labels = _labels(sandbox_id) if sandbox_id else {APP_LABEL: APP}
    return ",".join(f"{name}={value}" for name, value in labels.items())


def _labels(sandbox_id: str) -> dict[str, str]:
    return {APP_LABEL: APP, ID_LABEL: sandbox_id}


def _owned(name: str, owner: Object) -> Object:
    """Return the metadata of an object that goes when its pod goes."""
    labels = {key: owner["metadata"]["labels"][key] for key in (APP_LABEL, ID_LABEL)}
    reference = {"apiVersion": "v1", "kind": "Pod", "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
    return {"name": name, "labels": labels, "ownerReferences": [reference]}


def _mounts(settings: ProvisionerSettings, thread_id: str, user_id: str) -> tuple[list[Object], list[Object]]:
    places = [(of(_DATA, thread_id, user_id), path, False) for of, path in _THREAD_PARTS]
    places.append((_DATA.acp(thread_id, user_id), ACP_WORKSPACE, True))
    places.append((_DATA.user_skills_dir(user_id) / "custom", f"{SKILLS}/custom", True))
    mounts: list[Object] = [
        {"name": "data", "mountPath": path, "subPath": str(place.relative_to("/")), "readOnly": read_only}
        for place, path, read_only in places
    ]
    claims = {"data": settings.data_claim}
    if settings.skills_claim:
        claims["skills"] = settings.skills_claim
        mounts.append({"name": "skills", "mountPath": f"{SKILLS}/public", "subPath": "public", "readOnly": True})
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": claim}} for name, claim in claims.items()]
    return mounts, volumes


def _sign(settings: ProvisionerSettings, text: str) -> str:
    return hmac.new(settings.token.encode(), text.encode(), hashlib.sha256).hexdigest()
