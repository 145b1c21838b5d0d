"""The published schemas of Kubernetes' objects, closed: a field that no schema names is a fault, as ``kubectl`` sees it."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry, Resource

VERSIONS = ("1.30.0", "1.37.0")
"""The oldest and the newest version that our objects are checked against."""


def faults(body: dict[str, Any]) -> list[str]:
    """Return all that is wrong with an object, in any of the versions."""
    group, _, version = body["apiVersion"].rpartition("/")
    found: list[str] = []
    for release in VERSIONS:
        definitions, names = _schemas(release)
        name = names.get((group, version, body["kind"]))
        if name is None:
            found.append(f"{release} has no {body['apiVersion']} {body['kind']}")
            continue
        validator = Draft202012Validator({"$ref": f"k8s#/$defs/{name}"}, registry=definitions)
        found += [f"{release} {error.json_path}: {error.message}" for error in validator.iter_errors(body)]
    return found


@cache
def _schemas(release: str) -> tuple[Registry[Any], dict[tuple[str, str, str], str]]:
    source = files("kubernetes_validate") / f"kubernetes-json-schema/v{release}-local/_definitions.json"
    definitions = json.loads(source.read_text("utf-8").replace("/api/_definitions.json#", "#"))["$defs"]
    names: dict[tuple[str, str, str], str] = {}
    for name, definition in definitions.items():
        if "properties" in definition:
            definition["additionalProperties"] = False
        for kind in definition.get("x-kubernetes-group-version-kind", ()):
            names[kind["group"], kind["version"], kind["kind"]] = name
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "k8s", "$defs": definitions}
    return Registry().with_resource("k8s", Resource.from_contents(schema)), names
