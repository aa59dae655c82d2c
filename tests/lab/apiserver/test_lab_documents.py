"""Discovery, OpenAPI, and content negotiation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from chaos.lab.http import openapi, resources
from chaos.lab.http.errors import ApiError, negotiate
from chaos.lab.http.resources import RESOURCES
from tools import lab_schemas

ROOT = Path(__file__).parents[3]
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
TABLES = ("meta.k8s.io", ("v1", "v1beta1"), ("Table",))


@pytest.mark.lab
def test_legacy_discovery(shared: Any) -> None:
    assert shared.api("GET", "/version")[1]["gitVersion"] == "v1.36.2"
    assert shared.api("GET", "/api")[1]["versions"] == ["v1"]
    groups = shared.api("GET", "/apis")[1]["groups"]
    served = {group.rpartition("/")[0] for group, _ in RESOURCES if "/" in group}
    assert {group["name"] for group in groups} == served | {"authentication.k8s.io", "authorization.k8s.io"}
    assert shared.api("GET", "/apis/apps")[1]["preferredVersion"] == {"groupVersion": "apps/v1", "version": "v1"}
    entries = {item["name"]: item for item in shared.api("GET", "/apis/apps/v1")[1]["resources"]}
    assert {name for name in entries if "/" not in name} == {
        "deployments", "statefulsets", "daemonsets", "replicasets", "controllerrevisions",
    }  # fmt: skip
    deployment = entries["deployments"]
    assert (deployment["singularName"], deployment["shortNames"], deployment["categories"]) == (
        "deployment",
        ["deploy"],
        ["all"],
    )
    assert entries["deployments/status"]["verbs"] == ["get", "patch", "update"]


@pytest.mark.lab
@pytest.mark.parametrize("path", ["/apis/nope", "/apis/nope/v1", "/api/v2", "/openapi/v3/apis/nope/v1"])
def test_unknown_groups(shared: Any, path: str) -> None:
    status, answer = shared.api("GET", path)
    assert (status, answer["reason"]) == (404, "NotFound")


@pytest.mark.lab
def test_discovery_names_the_eviction_subresource(shared: Any) -> None:
    entries = {item["name"]: item for item in shared.api("GET", "/api/v1")[1]["resources"]}
    found = entries["pods/eviction"]
    assert (found["kind"], found["group"], found["version"], found["verbs"]) == ("Eviction", "policy", "v1", ["create"])


@pytest.mark.lab
@pytest.mark.parametrize(("path", "groups"), [("/api", [""]), ("/apis", None)])
def test_aggregated_discovery(shared: Any, path: str, groups: list[str] | None) -> None:
    status, answer = shared.api("GET", path, Accept=f"{AGGREGATED},application/json")
    assert (status, answer["kind"]) == (200, "APIGroupDiscoveryList")
    names = [item["metadata"]["name"] for item in answer["items"]]
    assert names == groups if groups else "" not in names


@pytest.mark.parametrize("core", [True, False])
def test_both_forms_of_discovery_are_equal(core: bool) -> None:
    for item in resources.aggregated_discovery(core)["items"]:
        for version in item["versions"]:
            group_version = f"{item['metadata']['name']}/{version['version']}".lstrip("/")
            legacy = resources.resource_list(group_version)
            assert legacy
            verbs = {
                (entry["resource"] + (f"/{sub['subresource']}" if sub else "")): (sub or entry)["verbs"]
                for entry in version["resources"]
                for sub in [None, *entry.get("subresources", [])]
            }
            assert verbs == {entry["name"]: entry["verbs"] for entry in legacy["resources"]}


@pytest.mark.lab
def test_openapi_index_leads_to_the_documents(shared: Any) -> None:
    paths = shared.api("GET", "/openapi/v3")[1]["paths"]
    assert "apis/policy/v1" in paths
    status, document = shared.api("GET", paths["apis/policy/v1"]["serverRelativeURL"])
    assert status == 200
    patch = document["paths"]["/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets/{name}"]["patch"]
    assert {parameter["name"] for parameter in patch["parameters"]} == {"dryRun", "fieldValidation"}
    assert patch["x-kubernetes-group-version-kind"] == {
        "group": "policy",
        "version": "v1",
        "kind": "PodDisruptionBudget",
    }


@pytest.mark.lab
def test_openapi_v2(shared: Any) -> None:
    document = shared.api("GET", "/openapi/v2")[1]
    pod = document["definitions"]["io.k8s.api.core.v1.Pod"]
    assert pod["properties"]["spec"] == {"$ref": "#/definitions/io.k8s.api.core.v1.PodSpec"}


def test_every_kind_served_has_a_schema() -> None:
    kinds = {(f"{kind['group']}/{kind['version']}".lstrip("/"), kind["kind"]) for kind in _kinds()}
    assert {(resource.group_version, resource.kind) for resource in RESOURCES.values()} <= kinds


def _kinds() -> list[dict[str, str]]:
    return [kind for schema in openapi.schemas().values() for kind in schema.get("x-kubernetes-group-version-kind", [])]


def test_the_schemas_are_those_of_the_tool() -> None:
    assert (ROOT / "chaos/lab/http/schemas.json").read_text() == lab_schemas.generate()


@pytest.mark.parametrize(
    ("header", "kind"),
    [
        ("", ""),
        ("*/*", ""),
        ("application/json", ""),
        (f"{TABLE},application/json", "Table"),
        (f"application/json,{TABLE}", ""),
        (f"application/json;q=0.5,{TABLE};q=0.9", "Table"),
        ("application/json;as=Table;v=v1beta1;g=meta.k8s.io", "Table"),
        ("application/json;as=Table;v=v9;g=meta.k8s.io,application/json", ""),
        ("application/vnd.kubernetes.protobuf,application/json", ""),
        ("application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io,*/*", ""),
    ],
)
def test_accept(header: str, kind: str) -> None:
    assert negotiate(header, *TABLES).kind == kind


@pytest.mark.parametrize(
    "header",
    [
        "application/vnd.kubernetes.protobuf",
        "text/html",
        "application/json;as=Chair;v=v1;g=meta.k8s.io",
        ";;=,",
        "a/b;q=x",
    ],
)
def test_not_acceptable(header: str) -> None:
    with pytest.raises(ApiError) as refused:
        negotiate(header, *TABLES)
    assert (refused.value.code, refused.value.reason) == (406, "NotAcceptable")
