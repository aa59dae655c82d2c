"""services/proxy: choice of the endpoint, and errors of lost endpoints."""

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
from tests.kit.simkit import VICTIM, run, spec, started, workload


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
