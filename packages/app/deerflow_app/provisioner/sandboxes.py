"""Make the pod of a thread, find it, remove it, and clear away pods that have ended."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass

from deerflow.community.remote_sandbox import LEASE
from deerflow_app.provisioner import objects
from deerflow_app.provisioner.kubernetes import KubernetesApi, KubernetesError, Object
from deerflow_app.provisioner.settings import ProvisionerSettings

PATIENCE = 20.0
"""Seconds for which a pod is waited for. DeerFlow waits 30 s for the answer, and for the pod itself a minute more."""
SWEEP_INTERVAL = 60.0
HOPELESS = frozenset(
    {"CrashLoopBackOff", "CreateContainerError", "ErrImageNeverPull", "ImagePullBackOff", "InvalidImageName"}
)
"""Reasons of a waiting container that no patience mends."""
ENDED = ("Failed", "Succeeded")
REFUSED = (403, 422)
"""Statuses after which a pod would stay without an address or a key."""
CONFLICT = 409
PAUSE = 0.1
"""Seconds between the end of a watch and the next one."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ProvisionedSandbox:
    """One sandbox, as the API shows it."""

    sandbox_id: str
    sandbox_url: str
    status: str
    """The pod's phase."""
    reason: str = ""
    """The cluster's reason for a pod that is not ready."""
    api_key: str = ""
    """The key of the pod; empty but for the caller that asked for the sandbox."""


class Sandboxes:
    """All sandboxes of a namespace. The cluster is the only state."""

    def __init__(self, settings: ProvisionerSettings, api: KubernetesApi, patience: float = PATIENCE) -> None:
        self._settings = settings
        self._api = api
        self._patience = patience

    async def create(self, sandbox_id: str, thread_id: str, user_id: str, owner: str = "") -> ProvisionedSandbox:
        """Make the thread's pod, or take the one that is there, and wait until it is ready or ``patience`` is over.

        Args:
            sandbox_id, thread_id, user_id: checked ids.
            owner: the process of DeerFlow that asks. From then on others cannot remove the pod, and no change of settings does.

        Raises:
            KubernetesError: the cluster refuses, or the pod will never be ready; it is removed.
        """
        body = objects.pod(self._settings, sandbox_id, thread_id, user_id)
        until = asyncio.get_running_loop().time() + self._patience
        # First: there is no moment in which a sandbox has an open network.
        await self._api.apply(objects.network_policy())
        made = await self._made(sandbox_id, body, owner, until)
        try:
            await self._api.apply(objects.secret(self._settings, sandbox_id, made))
            service = await self._api.apply(objects.service(sandbox_id, made, owner, time.time() + LEASE))
            pod = await self._when(sandbox_id, lambda one: one is None or _is_ready(one) or _is_over(one), until)
            if pod is None or _is_over(pod):
                raise KubernetesError(_reason(pod or {}) or "the pod was removed while it began", 422)
        except KubernetesError as error:
            if error.status in REFUSED:
                await self._remove(made)
            raise
        return _shown(pod, service, objects.api_key(self._settings, pod))

    async def get(self, sandbox_id: str) -> ProvisionedSandbox | None:
        """Return a sandbox, or None if there is none. Raises KubernetesError."""
        found = await self._find(objects.selector(sandbox_id))
        return found[0] if found else None

    async def list(self) -> list[ProvisionedSandbox]:
        """Return all of them. Raises KubernetesError."""
        return await self._find(objects.selector())

    async def delete(self, sandbox_id: str, owner: str = "") -> None:
        """Remove a sandbox with all that belongs to it, unless it has another owner by now. Raises KubernetesError."""
        if owner and await self._owner(sandbox_id) not in ("", owner):
            return
        for pod in (await self._api.list("Pod", objects.selector(sandbox_id))).items:
            await self._remove(pod)

    async def renew(self, sandbox_id: str, owner: str) -> None:
        """Renew the lease of a sandbox that is still the owner's. Raises KubernetesError."""
        service = await self._service(sandbox_id)
        if service is None or _note(service, objects.OWNER_NOTE) != owner:
            return
        try:
            await self._api.apply(objects.renewed(service, time.time() + LEASE))
        except KubernetesError as error:
            if error.status != CONFLICT:  # another owner's by now
                raise

    async def sweep(self) -> None:
        """Remove the pods that have ended, and those whose owner has not renewed their lease: it was killed. Raises KubernetesError."""
        pods, services = await asyncio.gather(
            *(self._api.list(kind, objects.selector()) for kind in ("Pod", "Service"))
        )
        left = {_id(one) for one in services.items if _is_left(one)}
        for pod in pods.items:
            if _phase(pod) in ENDED or _id(pod) in left:
                await self._remove(pod)

    async def sweep_again_and_again(self) -> None:
        while True:
            try:
                await self.sweep()
            except KubernetesError as error:
                log.warning("Pods that have ended or were left could not be removed: %s", error)
            await asyncio.sleep(SWEEP_INTERVAL)

    async def _made(self, sandbox_id: str, body: Object, owner: str, until: float) -> Object:
        """Return the pod that ``body`` describes. One that has ended, or of another making and not in use by the owner, is replaced."""
        making = body["metadata"]["labels"][objects.MAKING_LABEL]
        while asyncio.get_running_loop().time() < until:
            try:
                return await self._api.create(body)
            except KubernetesError as error:
                if error.status != CONFLICT:
                    raise
            pod = await self._when(sandbox_id, lambda one: True, until)
            if pod is None:
                continue
            is_same = pod["metadata"]["labels"].get(objects.MAKING_LABEL) == making
            is_of_thread = pod["metadata"].get("annotations") == body["metadata"]["annotations"]
            if not _is_over(pod) and (is_same or (is_of_thread and owner and await self._owner(sandbox_id) == owner)):
                return pod
            await self._remove(pod)
            uid = pod["metadata"]["uid"]
            await self._when(sandbox_id, lambda one, uid=uid: one is None or one["metadata"]["uid"] != uid, until)
        raise KubernetesError(f"the pod {body['metadata']['name']} of before does not end")

    async def _owner(self, sandbox_id: str) -> str:
        """Return the process that asked for a sandbox last, or ""."""
        service = await self._service(sandbox_id)
        return _note(service, objects.OWNER_NOTE) if service else ""

    async def _service(self, sandbox_id: str) -> Object | None:
        return next(iter((await self._api.list("Service", objects.selector(sandbox_id))).items), None)

    async def _remove(self, pod: Object) -> None:
        await self._api.delete("Pod", pod["metadata"]["name"], pod["metadata"]["uid"])

    async def _when(self, sandbox_id: str, done: Callable[[Object | None], bool], until: float) -> Object | None:
        """Return the pod as soon as ``done`` says so, or as it is at the time ``until``; None if there is none."""
        selector = objects.selector(sandbox_id)
        while True:
            listed = await self._api.list("Pod", selector)
            pod = listed.items[0] if listed.items else None
            left = until - asyncio.get_running_loop().time()
            if done(pod) or left <= 0:
                return pod
            async with aclosing(self._api.watch("Pod", selector, listed.version, left)) as events:
                async for kind, seen in events:
                    pod = None if kind == "DELETED" else seen
                    if done(pod):
                        return pod
            await asyncio.sleep(PAUSE)

    async def _find(self, selector: str) -> list[ProvisionedSandbox]:
        pods, services = await asyncio.gather(self._api.list("Pod", selector), self._api.list("Service", selector))
        addresses = {_id(one): one for one in services.items}
        return [_shown(pod, addresses.get(_id(pod))) for pod in pods.items]


def _shown(pod: Object, service: Object | None, key: str = "") -> ProvisionedSandbox:
    address = (service or {}).get("spec", {}).get("clusterIP", "")
    host = f"[{address}]" if ":" in address else address
    url = f"http://{host}:{objects.PORT}" if host else ""
    return ProvisionedSandbox(_id(pod), url, _phase(pod), "" if _is_ready(pod) else _reason(pod), key)


def _id(labelled: Object) -> str:
    return labelled["metadata"]["labels"][objects.ID_LABEL]


def _note(service: Object, name: str) -> str:
    return service["metadata"].get("annotations", {}).get(name, "")


def _is_left(service: Object) -> bool:
    """Return whether the owner of a sandbox has not renewed its lease."""
    until = _note(service, objects.LEASE_NOTE)
    return bool(_note(service, objects.OWNER_NOTE)) and until.isdigit() and float(until) < time.time()


def _phase(pod: Object) -> str:
    return pod.get("status", {}).get("phase", "Pending")


def _is_ready(pod: Object) -> bool:
    conditions = pod.get("status", {}).get("conditions", ())
    return not _is_over(pod) and any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _is_over(pod: Object) -> bool:
    """Return whether the pod will never serve any more."""
    hopeless = any(one.get("reason") in HOPELESS for one in _waiting(pod))
    return "deletionTimestamp" in pod["metadata"] or _phase(pod) in ENDED or hopeless


def _waiting(pod: Object) -> list[Object]:
    states = [one.get("state", {}) for one in pod.get("status", {}).get("containerStatuses", ())]
    return [state["waiting"] for state in states if "waiting" in state]


def _reason(pod: Object) -> str:
    """Return why a pod is not ready, in the cluster's words."""
    status = pod.get("status", {})
    unmet = [one for one in status.get("conditions", ()) if one["status"] != "True"]
    for one in (*_waiting(pod), status, *unmet):
        if text := ": ".join(part for part in (one.get("reason"), one.get("message")) if part):
            return text
    return ""
