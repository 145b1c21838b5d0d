"""Settings of the provisioner, read from the environment once at its start."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from deerflow_app.gateway.settings import SettingsError

OF_OTHERS = {
    "THREADS_HOST_PATH": "Pods mount a claim: set USERDATA_PVC_NAME.",
    "SKILLS_HOST_PATH": "Pods mount a claim: set SKILLS_PVC_NAME.",
    "KUBECONFIG_PATH": "The provisioner runs in the cluster, with a service account.",
}
"""Variables of other provisioners that would open a node to pods, or the cluster to the provisioner."""

Name = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")]
Quantity = Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$")]


class ProvisionerSettings(BaseModel):
    """Each by the name of its variable. See ``docs/kubernetes.md``."""

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    token: str = Field(alias="PROVISIONER_TOKEN", pattern=r"^[!-~]{32,}$", repr=False)
    """The token that DeerFlow shows. Keys of pods are derived from it."""
    namespace: Name = Field("deer-flow", alias="K8S_NAMESPACE")
    image: str = Field("deerflow-sandbox", alias="SANDBOX_IMAGE")
    """Speaks the HTTP contract of sandboxes on port 8080, as an ordinary user on a read-only root."""
    data_claim: Name = Field("deer-flow-data", alias="USERDATA_PVC_NAME")
    """The claim of the volume that is DeerFlow's data directory."""
    skills_claim: Name | None = Field(None, alias="SKILLS_PVC_NAME")
    """The claim of the volume whose folder ``public`` holds the public skills."""
    cpu: Quantity = Field("1", alias="SANDBOX_CPU_LIMIT")
    memory: Quantity = Field("1Gi", alias="SANDBOX_MEMORY_LIMIT")
    lifetime: int = Field(86_400, alias="SANDBOX_LIFETIME_SECONDS", gt=0)
    """Seconds after which a pod ends in any case, also one that is in use."""
    runtime_class: Name | None = Field(None, alias="SANDBOX_RUNTIME_CLASS")
    """gVisor's or Kata's, on nodes that have it."""
    pull_secret: Name | None = Field(None, alias="SANDBOX_PULL_SECRET")
    server: str = Field("https://kubernetes.default.svc", alias="K8S_API_SERVER", pattern=r"^https://")
    """The cluster's API."""
    service_account: Path = Field(Path("/var/run/secrets/kubernetes.io/serviceaccount"), alias="K8S_SERVICE_ACCOUNT")
    """The directory of ``token`` and ``ca.crt``."""

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> ProvisionerSettings:
        """Raises SettingsError for what Kubernetes would refuse, or what would leave the provisioner open."""
        for variable, advice in OF_OTHERS.items():
            if environ.get(variable):
                raise SettingsError(f"{variable} is not followed. {advice} Unset it.")
        given = {name: value for name, value in environ.items() if value}
        if "KUBERNETES_SERVICE_HOST" in given:
            host = given["KUBERNETES_SERVICE_HOST"]
            address = f"https://{f'[{host}]' if ':' in host else host}:{given.get('KUBERNETES_SERVICE_PORT', '443')}"
            given = {"K8S_API_SERVER": address} | given
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            first = error.errors()[0]
            raise SettingsError(f"{first['loc'][0]}: {first['msg']}. {_advice(str(first['loc'][0]))}") from error


def _advice(variable: str) -> str:
    if variable == "PROVISIONER_TOKEN":
        return "Set it, and sandbox.provisioner_token of DeerFlow, to the output of: openssl rand -hex 32"
    return "See docs/kubernetes.md."
