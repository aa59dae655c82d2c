"""Game days to deploy: an inventory of a real cluster, and a validator of manifests by Kubernetes' own schemas."""

from __future__ import annotations

import importlib.resources
import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import referencing
import yaml

from chaos.app.day.deploy import DeployOptions, SecretSource, deployment_of
from chaos.app.day.document import load_game_day
from chaos.gameday.deploy.deployment import Deployment
from tests.kit.gamedays import write_day

SCHEMAS = importlib.resources.files("kubernetes_validate") / "kubernetes-json-schema" / "v1.36.0-local-strict"
UID = "00000000-0000-0000-0000-000000000000"


@cache
def _definitions() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((SCHEMAS / "_definitions.json").read_text())
    return found


def faults(manifest: dict[str, Any]) -> list[str]:
    """Differences between a manifest and the strict schema of its kind in Kubernetes v1.36."""
    group, _, version = manifest["apiVersion"].rpartition("/")
    wanted = {"group": group, "version": version, "kind": manifest["kind"]}
    types = _definitions()["$defs"].items()
    (name,) = [name for name, schema in types if wanted in schema.get("x-kubernetes-group-version-kind", [])]
    registry = referencing.Resource.from_contents(_definitions()) @ referencing.Registry()
    schema = {"$ref": f"{_definitions()['$id']}#/$defs/{name}"}
    found = jsonschema.Draft202012Validator(schema, registry=registry).iter_errors(manifest)
    return [f"{manifest['kind']} {error.json_path}: {error.message}" for error in found]


def _secret(**reference: str) -> dict[str, Any]:
    return {"user": "ops", "password": reference}


def write_inventory(path: Path, **more: Any) -> Path:
    """An inventory of a cluster with keys, passwords and BMCs; ``more`` replaces its keys."""
    document = {
        "apiVersion": "nodefall.dev/v1alpha1",
        "kind": "Inventory",
        "metadata": {"name": "staging"},
        "cluster": {"kubeconfig": "~/.kube/config", "context": "staging", "expectUID": UID, "kubeletCA": "pki/ca.pem"},
        "defaults": {"identityFile": "~/.ssh/chaos", "knownHosts": "/etc/ssh/nodefall/known_hosts"},
        "hosts": {
            "worker-1": {
                "address": "192.0.2.1",
                "port": 2222,
                "power": {
                    "kind": "redfish",
                    "url": "https://192.0.2.9:8443/r",
                    "user": "ops",
                    "password": {"env": "BMC_1"},
                },
            },
            "worker-2": {
                "power": {"kind": "ipmi", "address": "192.0.2.8", "user": "ops", "password": {"file": "bmc/chaos"}}
            },
            "win-1": {
                "os": "windows",
                "transport": "winrm",
                "user": "chaos",
                "options": {"password": {"env": "WIN_1"}},
            },
        },
        "prometheus": {"url": "http://prometheus.monitoring:9090"},
    }
    path.write_text(json.dumps(document | more))
    path.chmod(0o644)
    return path


def make(folder: Path, options: DeployOptions | None = None, **spec: Any) -> tuple[Deployment, list[SecretSource]]:
    """A deployment of a day of one entry; ``spec``: keys of the day."""
    day = write_day(folder, ["one"], **spec)
    inventory = write_inventory(folder / "staging.yaml")
    options = options or DeployOptions("nodefall", "example.com/nodefall@sha256:" + "0" * 64)
    deployment, sources = deployment_of(load_game_day(day), inventory, options)
    return deployment, list(sources)


def make_large(folder: Path) -> None:
    """A day whose files have 280 kB, as seven experiments with 40 kB each have."""
    make(folder)
    experiment = yaml.safe_load((folder / "one.yaml").read_text())
    experiment["spec"]["workload"] = {"manifests": [f"{number}.yaml" for number in range(7)]}
    (folder / "one.yaml").write_text(json.dumps(experiment))
    for number in range(7):
        data = {"text": "x" * 40_000}
        metadata = {"name": f"large-{number}"}
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
        (folder / f"{number}.yaml").write_text(json.dumps(manifest))


def read_manifests(text: str) -> list[dict[str, Any]]:
    """The objects of a stream of YAML."""
    return [document for document in yaml.safe_load_all(text) if document]


def granted(manifests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the roles of the manifests permit, as the lab's authorizer knows it."""
    return [
        rule | ({"namespaces": [role["metadata"]["namespace"]]} if role["kind"] == "Role" else {})
        for role in manifests
        if role["kind"] in ("Role", "ClusterRole")
        for rule in role["rules"]
    ]


def by_kind(manifests: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    """The first object of a kind."""
    return next(manifest for manifest in manifests if manifest["kind"] == kind)


def by_identity(manifests: list[dict[str, Any]]) -> dict[tuple[str, str, str], dict[str, Any]]:
    """Objects by kind, namespace and name."""
    return {(each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]): each for each in manifests}
