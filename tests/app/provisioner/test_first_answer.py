"""The way of docs/kubernetes.md without a cluster: the shipped configuration and settings, a model's calls, a delivered file."""

from __future__ import annotations

import asyncio
import json
import shutil

import yaml
from bench.scripted_openai import ScriptedOpenAI, Text, ToolCalls
from tests.support.kubernetes_cluster import Cluster
from tests.support.provisioners import TOKEN, manifest, provisioner

from deerflow.client import DeerFlowClient
from deerflow.config.paths import Paths, shipped_skills


async def test_the_shipped_configuration_leads_to_commands_in_a_pod_and_a_delivered_file(
    cluster: Cluster, paths: Paths
):
    await asyncio.to_thread(
        lambda: shutil.copytree(shipped_skills() / "data-analysis", paths.base_dir / "public/data-analysis")
    )
    config = yaml.safe_load(manifest("ConfigMap", "deer-flow-config")["data"]["config.yaml"])
    del config["database"]
    config["skills"]["path"] = str(paths.base_dir)
    config["sandbox"]["tool_image"] = {"enabled": False}
    [container] = manifest("Deployment", "provisioner")["spec"]["template"]["spec"]["containers"]
    environ = {one["name"]: one["value"] for one in container["env"] if "value" in one}
    with ScriptedOpenAI() as endpoint, provisioner(cluster, **environ) as url:
        config["sandbox"] |= {"provisioner_url": url, "provisioner_token": TOKEN}
        model = {"use": "langchain_openai:ChatOpenAI", "base_url": endpoint.base_url, "api_key": "k"}
        config["models"] = [model | {"name": "m", "model": "m"}]
        command = "ls /mnt/skills/public/*; hostname -I; cat /mnt/user-data/uploads/* > /mnt/user-data/outputs/all.txt; echo ok"
        endpoint.script(
            ToolCalls(("bash", {"command": command})),
            ToolCalls(("present_files", {"filepaths": ["/mnt/user-data/outputs/all.txt"]})),
            Text("Delivered."),
        )
        client = await asyncio.to_thread(lambda: DeerFlowClient(config=config, base_dir=paths.base_dir))
        try:
            file = paths.base_dir / "given.txt"
            await asyncio.to_thread(file.write_text, "given")
            await client.achat("Copy it.", thread_id="t", files=[file])
            sent = json.dumps(endpoint.requests)
            assert "SKILL.md" in sent and "ok" in sent
            assert (paths.outputs("t", "default") / "all.txt").read_text() == "given"
            [pod] = cluster.all("pods")
            assert pod["metadata"]["annotations"] == {"deerflow/thread": "t", "deerflow/user": "default"}
            assert "delivered" in json.dumps(await client.athread_state("t")).lower()
        finally:
            await client.aclose()
    while cluster.all("pods"):
        await asyncio.sleep(0.02)
