"""EndpointSlices, and StatefulSet pods held by finalizers.

services/proxy: choice of the endpoint, and errors of lost endpoints.
"""

from __future__ import annotations

import asyncio
from typing import cast

import pytest
from aiohttp.test_utils import make_mocked_request

from chaos.lab.cluster import Cluster
from chaos.lab.http.errors import ApiError
from chaos.lab.http.resources import RESOURCES, RequestInfo, parse_request_info
from chaos.lab.http.subresources import ServiceProxy
from chaos.lab.sim.lockstep import Lockstep
from tests.kit.simkit import VICTIM, History, Object, run, spec, started, workload

SERVICE = {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]}


def _demo(**service: object) -> tuple[Cluster, History]:
    cluster, history = started(spec(workers=2), settle=1.0, recorded=False)
    cluster.create_object("namespaces", {"metadata": {"name": "demo"}})
    metadata = {"name": "web", "namespace": "demo"}
    cluster.create_object("services", {"metadata": metadata, "spec": {**SERVICE, **service}})
    cluster.create_object("deployments", workload("web", replicas=2, stops=8))
    run(cluster, 5.0)
    return cluster, history


def _slice(cluster: Cluster) -> Object:
    (found,) = cluster.store.list("endpointslices", "demo")
    return found


def _states(cluster: Cluster, uid: str) -> list[tuple[bool, bool, bool]]:
    """(ready, serving, terminating) of the pod's endpoint, None without one."""
    keys = ("ready", "serving", "terminating")
    endpoints = [item for item in _slice(cluster)["endpoints"] if item["targetRef"]["uid"] == uid]
    return [(*(item["conditions"][key] for key in keys),) for item in endpoints]


def _on_victim(cluster: Cluster) -> Object:
    return next(pod for pod in cluster.store.list("pods", "demo") if pod["spec"]["nodeName"] == VICTIM)


def test_slice_lists_every_running_pod() -> None:
    cluster, _ = _demo()
    found = _slice(cluster)
    pods = {pod["status"]["podIP"]: pod for pod in cluster.store.list("pods", "demo")}
    assert {item["addresses"][0] for item in found["endpoints"]} == set(pods)
    assert all(item["conditions"]["ready"] for item in found["endpoints"])
    assert found["ports"] == [{"name": "", "port": 8080, "protocol": "TCP"}]
    assert found["metadata"]["labels"]["kubernetes.io/service-name"] == "web"


@pytest.mark.parametrize("selector", [{"app": "web"}, {"app": "other"}])
def test_a_service_that_changes_selects_the_pods_of_its_new_labels(selector: dict[str, str]) -> None:
    cluster, _ = _demo(selector={"app": "other"})
    assert _slice(cluster)["endpoints"] == []
    service = cluster.store.list("services", "demo")[0]
    cluster.update_object("services", {**service, "spec": {**service["spec"], "selector": selector}})
    run(cluster, 1.0)
    assert len(_slice(cluster)["endpoints"]) == 2 * (selector == {"app": "web"})
    victim = _on_victim(cluster)
    cluster.delete_object("pods", "demo", victim["metadata"]["name"], 0)
    run(cluster, 5.0)
    assert victim["metadata"]["uid"] not in {item["targetRef"]["uid"] for item in _slice(cluster)["endpoints"]}
    assert len(_slice(cluster)["endpoints"]) == 2 * (selector == {"app": "web"})


def test_pods_stay_ready_while_a_graceful_shutdown_stops_them() -> None:
    cluster, _ = _demo()
    uid = _on_victim(cluster)["metadata"]["uid"]
    cluster.machines[VICTIM].logind.emit_prepare_for_shutdown(True)
    run(cluster, 7.0)
    assert _states(cluster, uid) == [(True, True, False)]
    run(cluster, 4.0)
    assert _states(cluster, uid) == []


@pytest.mark.parametrize(("publish", "ready"), [(False, False), (True, True)])
def test_deleted_pod_serves_on_but_is_not_ready(publish: bool, ready: bool) -> None:
    cluster, _ = _demo(publishNotReadyAddresses=publish)
    pod = _on_victim(cluster)
    cluster.delete_object("pods", "demo", pod["metadata"]["name"])
    run(cluster, 3.0)
    assert _states(cluster, pod["metadata"]["uid"]) == [(ready, True, True)]
    run(cluster, 8.0)
    assert _states(cluster, pod["metadata"]["uid"]) == []


def test_lost_node_takes_its_endpoints_out_when_it_is_unknown() -> None:
    cluster, _ = _demo()
    uid = _on_victim(cluster)["metadata"]["uid"]
    cluster.machines[VICTIM].power_off()
    run(cluster, 35.0)
    assert _states(cluster, uid) == [(True, True, False)]
    run(cluster, 30.0)
    assert _states(cluster, uid) == [(False, False, False)]


def test_slice_is_removed_with_its_service() -> None:
    cluster, _ = _demo()
    cluster.delete_object("services", "demo", "web")
    run(cluster, 2.0)
    assert list(cluster.store.list("endpointslices")) == []


@pytest.mark.parametrize("policy", ["OrderedReady", "Parallel"])
def test_stateful_set_waits_for_a_pod_with_a_finalizer(policy: str) -> None:
    """Facts 5.7: a terminating pod is never duplicated; OrderedReady also stops the higher ordinals."""
    cluster, _ = _demo()
    body = workload("db", replicas=2, podManagementPolicy=policy)
    cluster.create_object("statefulsets", body)
    run(cluster, 8.0)
    first = cluster.store.get("pods", "demo", "db-0")
    assert first is not None
    held = {**first, "metadata": {**first["metadata"], "finalizers": ["example.com/hold"]}}
    cluster.update_object("pods", held)
    cluster.delete_object("pods", "demo", "db-0")
    cluster.delete_object("pods", "demo", "db-1")
    run(cluster, 15.0)
    stuck = cluster.store.get("pods", "demo", "db-0")
    assert stuck is not None
    assert stuck["metadata"]["uid"] == first["metadata"]["uid"]
    assert stuck["status"]["phase"] == "Succeeded"
    assert (cluster.store.get("pods", "demo", "db-1") is None) == (policy == "OrderedReady")
    cluster.update_object("pods", {**stuck, "metadata": {**stuck["metadata"], "finalizers": []}})
    run(cluster, 8.0)
    assert [pod["status"]["phase"] for pod in cluster.store.list("pods", "demo")] == ["Running"] * 4
    replaced = cluster.store.get("pods", "demo", "db-0")
    assert replaced is not None
    assert replaced["metadata"]["uid"] != first["metadata"]["uid"]


class Waiting:
    """In place of the lockstep: whoever waits for a time gets it."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    async def wait_until(self, until: float) -> None:
        self.cluster.sim.run_until(until)


class Client:
    """Two pods behind a Service, one of them on the victim."""

    def __init__(self) -> None:
        self.cluster, _ = started(spec(workers=2), settle=1.0, recorded=False)
        self.cluster.create_object("namespaces", {"metadata": {"name": "demo"}})
        ports = [{"name": "http", "port": 80, "targetPort": 8080}, {"name": "admin", "port": 81, "targetPort": 8081}]
        for name, app in (("web", "web"), ("none", "none")):
            body = {"metadata": {"name": name, "namespace": "demo"}, "spec": {"selector": {"app": app}, "ports": ports}}
            self.cluster.create_object("services", body)
        self.cluster.create_object("deployments", workload("web", replicas=2, stops=8))
        run(self.cluster, 5.0)
        self.proxy = ServiceProxy(self.cluster, cast("Lockstep", Waiting(self.cluster)))
        pods = self.cluster.store.list("pods", "demo")
        self.pods = {pod["spec"]["nodeName"]: pod["metadata"]["name"] for pod in pods}

    def get(self, name: str = "web:80") -> str:
        """The pod that answered. Raises ApiError."""
        place = RequestInfo(RESOURCES["v1", "services"], "demo", name, "proxy")
        response = asyncio.run(self.proxy.get(make_mocked_request("GET", "/"), place))
        return (response.text or "").strip()

    def failure(self) -> tuple[float, str]:
        """How long until one of the endpoints failed, and why."""
        for _ in range(2):
            before = self.cluster.sim.now
            try:
                self.get()
            except ApiError as error:
                return round(self.cluster.sim.now - before, 1), f"{error.reason} {error.message}"
        raise AssertionError("nothing failed")


def test_requests_rotate_over_all_ready_endpoints() -> None:
    client = Client()
    assert {client.get(), client.get("http:web:80"), client.get("web:http")} == set(client.pods.values())


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("nope:80", 404, 'services "nope" not found'),
        ("none:80", 503, 'no endpoints available for service "none"'),
        ("web:82", 503, 'no service port 82 found for service "web"'),
        ("web:grpc", 503, 'no endpoints available for service "web"'),
        ("a:b:c:d", 400, 'invalid service request "a:b:c:d"'),
        (":80", 400, 'invalid service request ":80"'),
    ],
)
def test_rejected_requests(name: str, code: int, message: str) -> None:
    with pytest.raises(ApiError) as caught:
        Client().get(name)
    assert (caught.value.code, caught.value.message) == (code, message)


def test_an_endpoint_fails_with_its_node() -> None:
    client = Client()
    machine = client.cluster.machines[VICTIM]
    machine.partition()
    took, why = client.failure()
    assert (took, why.partition("8080: ")[2]) == (30.0, "i/o timeout")
    machine.heal()
    client.cluster.sim.run_until(client.cluster.sim.now + 60)
    machine.power_off()
    took, why = client.failure()
    assert (took, why.partition("8080: ")[2]) == (3.0, "connect: no route to host")
    assert why.startswith("ServiceUnavailable error trying to reach service: dial tcp 10.")


def test_an_ended_container_refuses_connections_until_its_endpoint_is_removed() -> None:
    client = Client()
    pod = client.cluster.store.get("pods", "demo", client.pods[VICTIM])
    assert pod is not None
    client.cluster.machines[VICTIM].runtime.stop(pod, 30.0, lambda: None)
    assert {client.get(), client.get()} == set(client.pods.values()), "it answers while it stops"
    containers = client.cluster.machines[VICTIM].runtime.containers(pod["metadata"]["uid"])
    while containers[0].state == "running":
        due = client.cluster.sim.next_due()
        assert due is not None
        client.cluster.sim.run_until(due)
    took, why = client.failure()
    assert (took, why.partition("8080: ")[2]) == (0.0, "connect: connection refused")


def test_the_path_after_proxy_belongs_to_the_service() -> None:
    for rest in ("", "/", "/healthz/x"):
        place = parse_request_info("v1", f"namespaces/demo/services/web:80/proxy{rest}")
        assert place == RequestInfo(RESOURCES["v1", "services"], "demo", "web:80", "proxy")
