"""The manifests in deploy/kubernetes. No cluster is at hand: schemas, Kubernetes' own standard, and what refers to what."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from tests.support.kubernetes_cluster import NAMESPACE, Refusal, restricted
from tests.support.kubernetes_schemas import faults
from tests.support.provisioners import MANIFESTS, TOKEN, manifest, manifests

from deerflow.community.aio_sandbox import AioSandboxProvider
from deerflow.community.aio_sandbox.pods import PodProvider
from deerflow.config import load_config
from deerflow.config.paths import Paths
from deerflow.sandbox.policy import build_sandbox_provider
from deerflow_app.provisioner.__main__ import PORT
from deerflow_app.provisioner.settings import ProvisionerSettings

DOCS = Path(__file__).parents[2] / "docs/kubernetes.md"
WORKLOADS = ("gateway", "worker", "provisioner", "postgres")
OBJECTS = {(body["kind"], body["metadata"]["name"]): body for body in manifests()}


def template(name: str) -> dict[str, Any]:
    [found] = [
        body for (kind, title), body in OBJECTS.items() if title == name and kind in ("Deployment", "StatefulSet")
    ]
    return found["spec"]["template"]


def containers(spec: dict[str, Any]) -> list[dict[str, Any]]:
    return [*spec["containers"], *spec.get("initContainers", ())]


def values(body: Any, key: str) -> Iterator[Any]:
    """Yield what stands anywhere in an object under a key."""
    if isinstance(body, dict):
        for name, value in body.items():
            if name == key:
                yield value
            yield from values(value, key)
    elif isinstance(body, list):
        for value in body:
            yield from values(value, key)


@pytest.mark.parametrize("body", OBJECTS.values(), ids=lambda body: f"{body['kind']}-{body['metadata']['name']}")
def test_each_object_is_one_of_kubernetes_in_our_namespace(body: dict[str, Any]):
    assert faults(body) == []
    assert body["metadata"].get("namespace", NAMESPACE) == NAMESPACE
    assert body["kind"] == "Namespace" or "namespace" in body["metadata"]


def test_a_field_that_is_misspelt_or_of_another_type_is_found():
    wrong = deepcopy(manifest("Deployment", "gateway"))
    [container] = wrong["spec"]["template"]["spec"]["containers"]
    container["securityContext"]["allowPrivilegeEscalatoin"] = False
    container["ports"][0]["containerPort"] = "2026"
    assert {"allowPrivilegeEscalatoin" in text or "containerPort" in text for text in faults(wrong)} == {True}
    assert len(faults(wrong)) == 4, "in each of two versions"
    del container["securityContext"]
    with pytest.raises(Refusal, match="gateway: allowPrivilegeEscalation"):
        restricted(wrong["spec"]["template"]["spec"])


@pytest.mark.parametrize("name", WORKLOADS)
def test_each_pod_is_confined_and_only_the_provisioner_may_speak_to_the_cluster(name: str):
    spec = template(name)["spec"]
    restricted(spec)
    assert spec["automountServiceAccountToken"] is (name == "provisioner")
    # A service called gateway would set GATEWAY_PORT=tcp://…, which is a setting of ours.
    assert spec["enableServiceLinks"] is False
    for container in containers(spec):
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert container["resources"]["limits"]["memory"] and container["resources"]["requests"]["cpu"]
    enforced = manifest("Namespace", NAMESPACE)["metadata"]["labels"]
    assert enforced["pod-security.kubernetes.io/enforce"] == "restricted"


def test_everything_that_is_referred_to_is_there_or_in_the_documentation():
    docs = DOCS.read_text()
    for name in WORKLOADS:
        spec = template(name)["spec"]
        for claim in values(spec, "claimName"):
            assert ("PersistentVolumeClaim", claim) in OBJECTS
        for config in values(spec, "configMap"):
            assert ("ConfigMap", config["name"]) in OBJECTS
        for account in values(spec, "serviceAccountName"):
            assert ("ServiceAccount", account) in OBJECTS
        for reference in values(spec, "secretKeyRef"):
            assert f"secret generic {reference['name']} " in docs and f"--from-literal={reference['key']}=" in docs
        mounted = {mount["name"] for container in containers(spec) for mount in container.get("volumeMounts", ())}
        assert mounted == {volume["name"] for volume in spec.get("volumes", ())}
    for (kind, name), body in OBJECTS.items():
        if kind == "Service":
            pod = template(name)
            assert body["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
            ports = {port["containerPort"] for one in pod["spec"]["containers"] for port in one["ports"]}
            assert {port["port"] for port in body["spec"]["ports"]} <= ports


def test_nothing_is_open_but_the_gateway():
    policies = [body["spec"] for (kind, _), body in OBJECTS.items() if kind == "NetworkPolicy"]
    assert {"podSelector": {}, "policyTypes": ["Ingress"]} in policies
    open_to_all = [one for one in policies for rule in one.get("ingress", ()) if "from" not in rule]
    assert [one["podSelector"] for one in open_to_all] == [{"matchLabels": {"app": "gateway"}}]


def test_the_configuration_gives_workers_the_pods_of_the_provisioner(tmp_path: Path):
    [text] = manifest("ConfigMap", "deer-flow-config")["data"].values()
    file = tmp_path / "config.yaml"
    file.write_text(text)
    for name in ("gateway", "worker"):
        given = {one["name"]: one.get("value", TOKEN) for one in template(name)["spec"]["containers"][0]["env"]}
        config = load_config(file, environ=given)
        assert config.skills.directory(tmp_path) == Path("/data")
        provider = build_sandbox_provider(config, Paths(tmp_path, environ={}))
        assert isinstance(provider, AioSandboxProvider) and isinstance(provider.backend, PodProvider)
        assert provider.backend._service._headers == {"Authorization": f"Bearer {TOKEN}"}


def test_the_provisioner_can_follow_its_variables_and_the_documentation_lists_them_all():
    [container] = template("provisioner")["spec"]["containers"]
    given = {one["name"]: one.get("value", TOKEN) for one in container["env"]}
    settings = ProvisionerSettings.from_environ(given)
    assert ("PersistentVolumeClaim", settings.data_claim) in OBJECTS and settings.namespace == NAMESPACE
    assert PORT == container["ports"][0]["containerPort"]
    docs = DOCS.read_text()
    assert [name for one in ProvisionerSettings.model_fields.values() if f"`{(name := one.alias)}`" not in docs] == []


def test_the_documented_loop_names_the_images_of_ours_and_nothing_else(tmp_path: Path):
    [loop] = re.findall(r"^for file in deploy/kubernetes.*?^done$", DOCS.read_text(), re.M | re.S)
    program = f"cd {DOCS.parents[1]}; REGISTRY=r.example/team TAG=7; {loop.replace('build/kubernetes', str(tmp_path))}"
    subprocess.run(["bash", "-euc", program], check=True)
    named = {("deerflow:1", "r.example/team/deerflow:7"), ("deerflow-sandbox:1", "r.example/team/deerflow-sandbox:7")}
    changes = [
        pair
        for file in MANIFESTS.glob("*.yaml")
        for pair in zip(file.read_text().splitlines(), (tmp_path / file.name).read_text().splitlines(), strict=True)
        if pair[0] != pair[1]
    ]
    assert len(changes) == 5
    assert {(old.split(": ")[1], new.split(": ")[1]) for old, new in changes} == named


def test_the_public_skills_come_to_where_the_configuration_looks_for_them(tmp_path: Path):
    [container] = template("gateway")["spec"]["initContainers"]
    *_, program = container["command"]
    for _ in range(2):  # each pod does it
        exec(program.replace("/data", str(tmp_path)))
    assert len([*tmp_path.glob("public/*/SKILL.md")]) > 5
