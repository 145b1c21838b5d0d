"""A client of the Kubernetes API: the eight kinds of requests that pods need.

https://kubernetes.io/docs/reference/using-api/api-concepts/
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import httpx

Object = dict[str, Any]
"""An object of Kubernetes, as JSON has it."""

MANAGER = "deerflow-provisioner"
TIMEOUT = 15.0
WATCH_SLACK = 5.0
"""Seconds beyond its own end that a watch may stay silent."""
AGAIN = (429, 503)
"""Statuses of a busy cluster. Asking again is safe: what was done nevertheless shows as a conflict."""
PAUSES = (0.2, 1.0)
"""Seconds before a request is sent again."""
PATHS = {
    "Pod": "api/v1/namespaces/{}/pods",
    "Service": "api/v1/namespaces/{}/services",
    "Secret": "api/v1/namespaces/{}/secrets",
    "NetworkPolicy": "apis/networking.k8s.io/v1/namespaces/{}/networkpolicies",
}


class KubernetesError(Exception):
    """A refusal of the cluster, in its own words. ``status`` is that of HTTP, 0 if it did not answer."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Listed:
    """Objects, and the version of the cluster that they were of: a watch goes on from there."""

    items: list[Object]
    version: str


class KubernetesApi:
    """One namespace of a cluster, as the service account of this pod may see it. To be used on one event loop."""

    def __init__(self, server: str, service_account: Path, namespace: str) -> None:
        """Raises OSError if the service account's certificate is not there. Blocks."""
        self._token_file = service_account / "token"
        context = ssl.create_default_context(cafile=str(service_account / "ca.crt"))
        # No proxy of the environment's: the API is in the cluster.
        self._http = httpx.AsyncClient(base_url=server, verify=context, timeout=TIMEOUT, trust_env=False)
        self._namespace = namespace

    async def create(self, body: Object) -> Object:
        """Make an object. Raises KubernetesError: 409 if there is one of its name."""
        return await self._ask("POST", self._path(body["kind"]), json=body)

    async def apply(self, body: Object) -> Object:
        """Make an object, or bring the one of its name into this shape. Raises KubernetesError."""
        return await self._ask(
            "PATCH",
            f"{self._path(body['kind'])}/{body['metadata']['name']}",
            again=(409, *AGAIN),
            params={"fieldManager": MANAGER, "force": "true"},
            headers={"Content-Type": "application/apply-patch+yaml"},  # JSON is YAML
            content=json.dumps(body),
        )

    async def list(self, kind: str, selector: str) -> Listed:
        """Return the objects whose labels match. Raises KubernetesError."""
        found = await self._ask("GET", self._path(kind), params={"labelSelector": selector})
        return Listed(found["items"], found["metadata"]["resourceVersion"])

    async def watch(self, kind: str, selector: str, version: str, seconds: float) -> AsyncGenerator[tuple[str, Object]]:
        """Yield what changes after ``version``: ``ADDED``, ``MODIFIED`` or ``DELETED``, and the object.

        It ends after ``seconds``, or sooner: if it breaks off, or the cluster has forgotten ``version``. Then list again.
        Raises KubernetesError.
        """
        params = {"labelSelector": selector, "watch": "true", "resourceVersion": version}
        params["timeoutSeconds"] = str(max(1, round(seconds)))
        timeout = httpx.Timeout(TIMEOUT, read=seconds + WATCH_SLACK)
        try:
            async with self._answer("GET", self._path(kind), params=params, timeout=timeout) as answer:
                async for line in answer.aiter_lines():
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        return
                    yield event["type"], event["object"]
        except KubernetesError as error:
            if error.status not in (0, 410):
                raise

    async def delete(self, kind: str, name: str, uid: str) -> None:
        """Delete an object unless it is gone, or another one by now. What it owns goes with it. Raises KubernetesError."""
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        try:
            await self._ask("DELETE", f"{self._path(kind)}/{name}", json=body | {"preconditions": {"uid": uid}})
        except KubernetesError as error:
            if error.status not in (404, 409):
                raise

    async def aclose(self) -> None:
        await self._http.aclose()

    def _path(self, kind: str) -> str:
        return PATHS[kind].format(self._namespace)

    async def _ask(self, method: str, path: str, again: tuple[int, ...] = AGAIN, **options: Any) -> Object:
        pauses = iter(PAUSES)
        while True:
            try:
                async with self._answer(method, path, **options) as answer:
                    return cast(Object, json.loads(await answer.aread()))
            except ValueError as error:
                raise KubernetesError(f"The cluster's API answers with something else than JSON: {error}") from error
            except KubernetesError as error:
                if error.status not in again or (pause := next(pauses, None)) is None:
                    raise
                await asyncio.sleep(pause)

    @asynccontextmanager
    async def _answer(self, method: str, path: str, **options: Any) -> AsyncIterator[httpx.Response]:
        # The kubelet replaces the token every hour.
        token = (await asyncio.to_thread(self._token_file.read_text)).strip()
        headers = options.pop("headers", {}) | {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        try:
            async with self._http.stream(method, path, headers=headers, **options) as answer:
                if not answer.is_success:
                    raise KubernetesError(_complaint(await answer.aread(), answer), answer.status_code)
                yield answer
        except httpx.HTTPError as error:
            reason = str(error) or type(error).__name__
            raise KubernetesError(f"The cluster's API at {self._http.base_url} does not answer: {reason}") from error


def _complaint(body: bytes, answer: httpx.Response) -> str:
    try:
        return str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        return f"{answer.status_code} {answer.reason_phrase}"
