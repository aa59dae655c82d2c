"""Prometheus and the controller-manager are only needed, and only contacted, if the experiment uses them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import ValidationError

from chaos.core.cluster_view import ClusterView
from chaos.core.errors import NodefallError, Refused
from chaos.core.experiment import Experiment
from chaos.core.inventory import ControllerManager, Inventory
from chaos.core.kube import Node, NodeMetadata
from chaos.core.ports import Response
from chaos.core.probes import Query
from chaos.engine.connection import ClusterConnection
from chaos.engine.load import LoadedExperiment, host_facts
from chaos.engine.observers import check_prometheus, source_checks
from chaos.engine.registry import load_registry

QUERIES = [Query(name="up", query="up")]


def inventory(**prometheus: Any) -> Inventory:
    given = {"prometheus": prometheus} if prometheus else {}
    head = {"apiVersion": "nodefall.dev/v1alpha1", "kind": "Inventory", "metadata": {"name": "x"}, "lab": {}}
    return Inventory.model_validate({**head, **given})


def test_no_query_needs_no_prometheus_and_no_secret() -> None:
    check_prometheus([], inventory())
    check_prometheus([], inventory(url="http://127.0.0.1:1", credentials={"env": "NODEFALL_NO_SUCH_VARIABLE"}))


@pytest.mark.parametrize(
    ("prometheus", "kind", "message"),
    [
        ({}, Refused, "no prometheus in the inventory"),
        ({"url": "http://127.0.0.1:1", "credentials": {"env": "NODEFALL_NO_SUCH_VARIABLE"}}, Refused, "is not set"),
        ({"url": "http://127.0.0.1:1"}, NodefallError, "Prometheus at http://127.0.0.1:1"),
    ],
)
def test_unusable_prometheus_settings_are_errors(
    prometheus: dict[str, Any], kind: type[NodefallError], message: str
) -> None:
    with pytest.raises(kind) as caught:
        check_prometheus(QUERIES, inventory(**prometheus))
    assert message in caught.value.message


def experiment(action: str, assertion: str, **params: Any) -> Experiment:
    uses_host = {"assert": assertion, "with": params, "within": "10s"}
    spec = {
        "title": "x",
        "targets": {"victim": {}},
        "steadyState": [{"assert": "nodes-ready"}],
        "method": [{"name": "go", "action": action, "target": "victim"}],
        "hypothesis": [uses_host],
    }
    head = {"apiVersion": "nodefall.dev/v1alpha1", "kind": "Experiment", "metadata": {"name": "x"}}
    return load_registry().bind(Experiment.model_validate({**head, "spec": spec}))


@pytest.mark.parametrize(
    ("action", "assertion", "uses_host"),
    [
        ("cordon", "nodes-ready", False),
        ("cordon", "inhibitor-held", True),
        ("cordon", "at-most-one", True),
        ("poweroff", "nodes-ready", True),
    ],
)
def test_hosts_are_used_if_an_action_or_assertion_needs_them(action: str, assertion: str, uses_host: bool) -> None:
    view = ClusterView("", {name: Node(NodeMetadata(name)) for name in ("n1", "n2")})
    facts_by_node = host_facts(experiment(action, assertion), {"victim": ("n1", "n2")}, view)
    assert {node: facts is not None for node, facts in facts_by_node.items()} == {"n1": uses_host, "n2": uses_host}


def loaded(made: Experiment) -> LoadedExperiment:
    return LoadedExperiment(Path("x.yaml"), made, [], load_registry())


def connection(**cluster: Any) -> ClusterConnection:
    head = {"apiVersion": "nodefall.dev/v1alpha1", "kind": "Inventory", "metadata": {"name": "x"}}
    inventory_ = Inventory.model_validate({**head, "cluster": {"kubeconfig": "k", **cluster}})
    stub: Any = SimpleNamespace(component=lambda url: Response(403, b"", {}))
    return ClusterConnection(inventory_, stub, stub, stub, "", "")


OF_CONTROLLERS: dict[str, Any] = {"name": "taint_eviction_controller_pod_deletions_total", "at-least": 1}


@pytest.mark.parametrize(
    ("cluster", "message"),
    [
        ({}, "no controllerManager in the inventory"),
        ({"controllerManager": {"urls": ["https://192.0.2.1:10257"]}}, "at https://192.0.2.1:10257 answers 403"),
    ],
)
def test_the_controller_manager_is_checked_if_the_experiment_uses_it(cluster: dict[str, Any], message: str) -> None:
    of_kubelet = experiment("cordon", "metric", node="victim", **OF_CONTROLLERS)
    assert source_checks(of_kubelet, connection(**cluster)) == {}
    of_controller_manager = experiment("cordon", "metric", **{"controller-manager": True}, **OF_CONTROLLERS)
    (check,) = source_checks(of_controller_manager, connection(**cluster)).values()
    with pytest.raises(NodefallError) as caught:
        check()
    assert message in caught.value.message


@pytest.mark.parametrize("url", ["https://10.0.0.1:10257", "https://[2001:db8::1]:10257", "https://cp.example"])
def test_valid_urls_of_a_controller_manager(url: str) -> None:
    assert ControllerManager.model_validate({"urls": [url]}).urls == [url]


@pytest.mark.parametrize(
    "url",
    [
        "http://10.0.0.1:10257",
        "https://me:secret@10.0.0.1:10257",
        "https://10.0.0.1:10257/metrics",
        "https://",
        "10.0.0.1:10257",
    ],
)
def test_invalid_urls_of_a_controller_manager(url: str) -> None:
    with pytest.raises(ValidationError, match="is not a URL like https://"):
        ControllerManager.model_validate({"urls": [url]})


def test_a_controller_manager_needs_a_url() -> None:
    with pytest.raises(ValidationError):
        ControllerManager.model_validate({"urls": []})


def test_a_user_needs_credentials() -> None:
    with pytest.raises(ValidationError, match="user needs credentials"):
        inventory(url="http://127.0.0.1:1", user="me")
