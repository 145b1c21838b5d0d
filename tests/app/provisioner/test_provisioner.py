"""The provisioner's own API, and what it asks of the cluster, where the cluster is not as one would like."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.certificates import issued
from tests.support.kubernetes_cluster import Cluster
from tests.support.provisioners import TOKEN, manifest, provisioner, settings_for

from deerflow_app.gateway.settings import SettingsError
from deerflow_app.provisioner import sandboxes
from deerflow_app.provisioner.__main__ import main
from deerflow_app.provisioner.kubernetes import KubernetesApi, KubernetesError
from deerflow_app.provisioner.settings import ProvisionerSettings

WANTED = {"sandbox_id": "abc", "thread_id": "t", "user_id": "u"}


@pytest.fixture(autouse=True)
def directories(paths: Any) -> None:
    for thread in ("t", "t2"):
        paths.ensure_thread_dirs(thread, "u")
    paths.ensure_skills_dir("u")


@pytest.fixture
def url(cluster: Cluster) -> Iterator[str]:
    with provisioner(cluster) as url:
        yield url


@pytest.fixture
async def http(url: str) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60) as http:
        yield http


async def made(http: httpx.AsyncClient, **changes: str) -> dict[str, Any]:
    answer = await http.post("/api/sandboxes", json=WANTED | changes)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_the_api_is_that_of_other_provisioners_and_an_address_inside_of_the_cluster(http: httpx.AsyncClient):
    assert (await http.get("/health", headers={"Authorization": ""})).json() == {"status": "ok"}
    sandbox = await made(http)
    assert sandbox.keys() == {"sandbox_id", "sandbox_url", "status", "api_key"}
    assert (sandbox["sandbox_id"], sandbox["status"]) == ("abc", "Running")
    assert await made(http) == sandbox, "asked for twice it is the same"
    known = {key: value for key, value in sandbox.items() if key != "api_key"}
    assert (await http.get("/api/sandboxes/abc")).json() == known
    assert (await http.get("/api/sandboxes")).json() == {"sandboxes": [known], "count": 1}
    missing = await http.get("/api/sandboxes/def")
    assert (missing.status_code, missing.json()) == (404, {"detail": "Sandbox 'def' not found"})
    for _ in range(2):
        assert (await http.delete("/api/sandboxes/abc")).json() == {"ok": True, "sandbox_id": "abc"}


async def test_nothing_is_done_without_the_token(url: str, cluster: Cluster):
    for given in ("", f"Bearer {TOKEN[:-1]}", f"Basic {TOKEN}", "Bearer é"):
        async with httpx.AsyncClient(base_url=url, headers={"Authorization": given.encode("latin-1")}) as http:
            for method, path in (("POST", ""), ("GET", ""), ("GET", "/abc"), ("DELETE", "/abc")):
                assert (await http.request(method, f"/api/sandboxes{path}", json=WANTED)).status_code == 401
            assert (await http.get("/openapi.json")).status_code == 404
    assert not cluster.used - {("list", "pods"), ("list", "services")}, "beside the sweep"


async def test_no_id_reaches_a_name_or_a_path_that_might_be_more_than_an_id(http: httpx.AsyncClient, cluster: Cluster):
    wrong = [{"sandbox_id": value} for value in ("", "A", "a/b", "-a", "a" * 41, "a\n", "a,app=x")]
    for name in ("thread_id", "user_id"):
        wrong += [{name: value} for value in ("", "..", "a/b", "a\n", "é", "a" * 129)]
    for change in wrong:
        answer = await http.post("/api/sandboxes", json=WANTED | change)
        assert answer.status_code == 422, change
    assert (
        (await http.get("/api/sandboxes/a,b")).status_code == (await http.delete("/api/sandboxes/A")).status_code == 422
    )
    assert not cluster.used - {("list", "pods"), ("list", "services")}, "beside the sweep"


async def test_it_asks_the_cluster_for_what_its_role_allows_and_for_all_of_that(
    http: httpx.AsyncClient, cluster: Cluster
):
    cluster.kubelet.delay = 0.5  # so that it has to watch
    await made(http)
    await http.get("/api/sandboxes")
    await http.delete("/api/sandboxes/abc")
    allowed = {(verb, kind) for rule in cluster.role for kind in rule["resources"] for verb in rule["verbs"]}
    assert cluster.used == allowed
    requests = {("write" if verb in ("create", "patch") else verb, kind) for verb, kind in cluster.used}
    assert len(requests) <= 8


async def test_the_network_is_closed_before_there_is_a_pod_and_again_if_somebody_opened_it(
    http: httpx.AsyncClient, cluster: Cluster
):
    await made(http)
    [policy] = cluster.all("networkpolicies")
    assert policy["spec"]["egress"] == [] and policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
    [rule] = policy["spec"]["ingress"]
    assert rule["from"] == [{"podSelector": {"matchLabels": {"deerflow/uses-sandboxes": "true"}}}]
    for name in ("gateway", "worker"):
        labels = manifest("Deployment", name)["spec"]["template"]["metadata"]["labels"]
        assert labels["deerflow/uses-sandboxes"] == "true"
    cluster.put("networkpolicies", policy | {"spec": {"podSelector": {}, "egress": [{}]}})
    await made(http, sandbox_id="def", thread_id="t2")
    assert [one["spec"] for one in cluster.all("networkpolicies")] == [policy["spec"]]
    cluster.role = [rule for rule in cluster.role if "networkpolicies" not in rule["resources"]]
    assert (await http.post("/api/sandboxes", json=WANTED | {"sandbox_id": "ghi"})).status_code == 500
    assert len(cluster.all("pods")) == 2, "where it cannot be closed there is no pod"


async def test_two_that_ask_at_once_get_the_same_pod(http: httpx.AsyncClient, cluster: Cluster):
    answers = await asyncio.gather(*(made(http) for _ in range(5)))
    assert all(answer == answers[0] for answer in answers)
    assert len(cluster.kubelet.started) == 1


@pytest.mark.parametrize(
    "change", [{"thread_id": "t2"}, {"SANDBOX_MEMORY_LIMIT": "2Gi"}, {"PROVISIONER_TOKEN": "x" * 40}]
)
async def test_a_pod_of_another_making_is_replaced(http: httpx.AsyncClient, cluster: Cluster, change: dict[str, str]):
    cluster.kubelet.ending = 0.3
    first = await made(http)
    environ = {key: value for key, value in change.items() if key.isupper()}
    with provisioner(cluster, **environ) as url:
        headers = {"Authorization": f"Bearer {environ.get('PROVISIONER_TOKEN', TOKEN)}"}
        async with httpx.AsyncClient(base_url=url, headers=headers, timeout=60) as other:
            second = await made(other, **{key: value for key, value in change.items() if key.islower()})
            used = await made(other, **{key: value for key, value in change.items() if key.islower()}, owner="w")
    assert second["api_key"] != first["api_key"] and second == used
    if "SANDBOX_MEMORY_LIMIT" in change:
        assert await made(http, owner="w") == second, "not under the hands of the one that uses it"
    async with httpx.AsyncClient(base_url=second["sandbox_url"], trust_env=False) as pod:
        assert (await pod.get("/v1/sandbox", headers={"X-AIO-API-Key": second["api_key"]})).status_code == 200
    assert len(cluster.all("pods")) == len(cluster.all("services")) == len(cluster.all("secrets")) == 1


async def test_a_pod_that_has_ended_is_replaced_and_one_without_use_is_swept(http: httpx.AsyncClient, cluster: Cluster):
    await made(http)
    cluster.kubelet.end("sandbox-abc", "Evicted")
    assert (await made(http))["status"] == "Running"
    cluster.kubelet.end("sandbox-abc", "DeadlineExceeded")
    settings = settings_for(cluster)
    api = await asyncio.to_thread(KubernetesApi, settings.server, settings.service_account, settings.namespace)
    await sandboxes.Sandboxes(settings, api).sweep()
    while cluster.all("pods"):
        await asyncio.sleep(0.02)
    await api.aclose()


async def test_a_pod_whose_owner_is_gone_is_swept_and_one_whose_lease_is_renewed_stays(
    http: httpx.AsyncClient, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
):
    settings = settings_for(cluster)
    api = await asyncio.to_thread(KubernetesApi, settings.server, settings.service_account, settings.namespace)
    monkeypatch.setattr(sandboxes, "LEASE", -1)
    await made(http, owner="a")
    monkeypatch.undo()
    await http.put("/api/sandboxes/abc/lease", params={"owner": "b"})  # not its own
    await made(http, sandbox_id="def", thread_id="t2")  # of a caller that has no name and renews nothing
    monkeypatch.setattr(sandboxes, "LEASE", -1)
    await made(http, sandbox_id="ghi", owner="a")
    monkeypatch.undo()
    assert (await http.put("/api/sandboxes/ghi/lease", params={"owner": "a"})).status_code == 200
    assert (await http.put("/api/sandboxes/none/lease", params={"owner": "a"})).status_code == 200
    await sandboxes.Sandboxes(settings, api).sweep()
    while len(cluster.all("pods")) != 2:
        await asyncio.sleep(0.02)
    assert {pod["metadata"]["name"] for pod in cluster.all("pods")} == {"sandbox-def", "sandbox-ghi"}
    await api.aclose()


async def test_a_lease_that_is_renewed_while_another_owner_asks_leaves_the_sandbox_to_that_one(
    http: httpx.AsyncClient, cluster: Cluster
):
    await made(http, owner="a")
    original = cluster.answer

    def answer(method: str, target: str, *rest: Any) -> Any:
        if "/services/" in target and method == "PATCH":
            service = cluster.all("services")[0]
            service["metadata"]["annotations"]["deerflow/owner"] = "b"
            cluster.put("services", service)
        return original(method, target, *rest)

    cluster.answer = answer  # type: ignore[method-assign]
    assert (await http.put("/api/sandboxes/abc/lease", params={"owner": "a"})).status_code == 200
    [service] = cluster.all("services")
    assert service["metadata"]["annotations"]["deerflow/owner"] == "b"


async def test_watches_that_expire_or_break_off_are_started_again(http: httpx.AsyncClient, cluster: Cluster):
    cluster.kubelet.delay = 0.5
    cluster.expired, cluster.broken = 1, 1
    assert (await made(http))["status"] == "Running"
    assert cluster.expired == cluster.broken == 0


@pytest.mark.parametrize(
    ("status", "reason", "kept"), [(403, "exceeded quota", 0), (422, "Invalid", 0), (503, "overloaded", 1)]
)
async def test_what_the_cluster_refuses_is_quoted_and_leaves_no_pod_behind_without_an_address(
    http: httpx.AsyncClient, cluster: Cluster, status: int, reason: str, kept: int
):
    original, count = cluster.answer, 0

    def answer(method: str, target: str, *rest: Any) -> Any:
        if "/services" in target and method == "PATCH":
            cluster.answers = [(status, reason)]
        return original(method, target, *rest)

    cluster.answer = answer  # type: ignore[method-assign]
    answered = await http.post("/api/sandboxes", json=WANTED)
    assert answered.status_code == 500
    assert answered.json()["detail"] == f"Pod creation failed: {reason}, for a test"
    while count < 50 and len(cluster.all("pods")) != kept:
        count += 1
        await asyncio.sleep(0.02)
    assert len(cluster.all("pods")) == kept
    cluster.answer = original  # type: ignore[method-assign]
    assert (await made(http))["status"] == "Running"


async def test_a_cluster_that_is_busy_or_has_another_writer_is_asked_again(http: httpx.AsyncClient, cluster: Cluster):
    await http.get("/api/sandboxes")  # after the sweep
    for refused in (429, 503):
        cluster.answers = [(refused, "busy")]
        assert (await made(http))["status"] == "Running"
    original, conflicts = cluster.answer, [409]

    def answer(method: str, target: str, *rest: Any) -> Any:
        if method == "PATCH" and conflicts:
            cluster.answers = [(conflicts.pop(), "Conflict")]
        return original(method, target, *rest)

    cluster.answer = answer  # type: ignore[method-assign]
    assert (await made(http))["status"] == "Running" and not conflicts


async def test_a_role_that_lacks_a_right_is_named_with_it(http: httpx.AsyncClient, cluster: Cluster):
    cluster.role = [rule for rule in cluster.role if rule["resources"] != ["pods"]]
    answer = await http.post("/api/sandboxes", json=WANTED)
    assert answer.status_code == 500
    assert 'cannot create resource "pods" in API group "" in the namespace "deer-flow"' in answer.json()["detail"]


async def test_the_token_of_the_service_account_may_change(http: httpx.AsyncClient, cluster: Cluster):
    await made(http)
    cluster.rotate_token()
    assert (await http.get("/api/sandboxes")).json()["count"] == 1


async def test_a_cluster_of_another_authority_or_none_is_not_spoken_to(cluster: Cluster, tmp_path: Path):
    settings = settings_for(cluster)
    _, other = await asyncio.to_thread(issued, "other", tmp_path)
    await asyncio.to_thread((settings.service_account / "ca.crt").write_bytes, other.read_bytes())
    for server in (settings.server, "https://localhost:1"):
        api = await asyncio.to_thread(KubernetesApi, server, settings.service_account, "deer-flow")
        with pytest.raises(KubernetesError, match="does not answer") as raised:
            await api.list("Pod", "app=x")
        assert raised.value.status == 0
        await api.aclose()
    assert not cluster.used


async def test_nothing_of_the_machine_and_no_right_of_its_own_is_in_a_pod(http: httpx.AsyncClient, cluster: Cluster):
    await made(http)
    [pod] = cluster.all("pods")
    spec = pod["spec"]
    assert spec["automountServiceAccountToken"] is False and spec["enableServiceLinks"] is False
    assert spec["securityContext"]["runAsUser"] >= 10_000
    [container] = spec["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["resources"]["limits"].keys() == {"cpu", "memory", "ephemeral-storage"}
    assert all(volume.keys() == {"name", "persistentVolumeClaim"} for volume in spec["volumes"])
    assert all(mount["subPath"] for mount in container["volumeMounts"])
    [service] = cluster.all("services")
    assert service["spec"]["type"] == "ClusterIP"
    assert TOKEN not in str(cluster.all("pods") + cluster.all("services") + cluster.all("secrets"))


@pytest.mark.parametrize(
    ("environ", "sentence"),
    [
        ({"PROVISIONER_TOKEN": "short"}, "openssl rand -hex 32"),
        ({"PROVISIONER_TOKEN": ""}, "openssl rand -hex 32"),
        ({"K8S_API_SERVER": "http://10.0.0.1"}, "K8S_API_SERVER"),
        ({"THREADS_HOST_PATH": "/srv"}, "set USERDATA_PVC_NAME"),
        ({"USERDATA_PVC_NAME": "../x"}, "USERDATA_PVC_NAME"),
        ({"SANDBOX_MEMORY_LIMIT": "much"}, "SANDBOX_MEMORY_LIMIT"),
    ],
)
def test_settings_that_would_leave_it_open_are_refused(environ: dict[str, str], sentence: str):
    with pytest.raises(SettingsError, match=sentence):
        ProvisionerSettings.from_environ({"PROVISIONER_TOKEN": TOKEN} | environ)


def test_outside_of_a_cluster_it_says_what_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    command = [sys.executable, "-m", "deerflow_app.cli.main", "provisioner"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr.count("PROVISIONER_TOKEN")) == (2, 1), done.stderr
    monkeypatch.setenv("PROVISIONER_TOKEN", TOKEN)
    monkeypatch.setenv("K8S_SERVICE_ACCOUNT", str(tmp_path))
    with pytest.raises(SystemExit, match=r"no service account in .* of deploy/kubernetes/provisioner\.yaml"):
        main()
