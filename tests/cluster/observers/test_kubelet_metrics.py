"""Scrapes of kubelets: what is recorded, findings about the node, and blind windows."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import msgspec
import pytest

from chaos.cluster.errors import KubeUnreachable
from chaos.cluster.observers.metrics import KUBELET_PREFIXES as METRIC_PREFIXES
from chaos.cluster.observers.metrics import filter_metrics, kubelet_endpoint, kubelet_metrics, parse_configz
from chaos.core.decode import decode
from chaos.core.kube import Address, DaemonEndpoints, Endpoint, Node, NodeStatus
from chaos.core.ports import Response
from tests.kit.misbehaving import Lines
from tests.kit.turn_clock import TurnClock, first_scrapes

METRICS = (
    b"# HELP kubelet_graceful_shutdown_start_time_seconds [ALPHA] Last graceful shutdown start time\n"
    b"# TYPE kubelet_graceful_shutdown_start_time_seconds gauge\n"
    b"kubelet_graceful_shutdown_start_time_seconds 1.795232133e+09\n"
    b"kubelet_graceful_shutdown_end_time_seconds 0\n"
    b"kubelet_running_pods 7\n"
    b'kubelet_admission_rejections_total{reason="NodeShutdown"} 2\n'
)
CONFIGZ = json.dumps({"kubeletconfig": {"shutdownGracePeriod": "30s", "staticPodPath": "/secret"}}).encode()
NODE = Node(
    status=NodeStatus(
        addresses=[Address("Hostname", "n1"), Address("InternalIP", "192.0.2.7"), Address("InternalIP", "2001:db8::7")],
        daemon_endpoints=DaemonEndpoints(Endpoint(10999)),
    )
)
Answer = Callable[[str], Response]


class Kubelet:
    """A KubeApi whose kubelet and node proxy answer as the test says."""

    def __init__(self) -> None:
        self.direct: Answer = answers
        self.proxy: Answer = answers
        self.requested: list[str] = []

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
    ) -> Response:
        self.requested.append(path)
        return self.proxy(path.removeprefix("/api/v1/nodes/n1/proxy"))

    def stream(self, path: str, query: Mapping[str, str]) -> AbstractContextManager[Any]:
        raise AssertionError("nothing is watched here")

    def kubelet(self, address: str, port: int, path: str) -> Response:
        self.requested.append(f"{address}:{port}{path}")
        return self.direct(path)


def answers(path: str) -> Response:
    return Response(200, {"/metrics": METRICS, "/configz": CONFIGZ}[path], {})


def status(code: int) -> Answer:
    return lambda _: Response(code, b"Unauthorized", {})


def fails(kind: str) -> Answer:
    def answer(_: str) -> Response:
        raise KubeUnreachable(kind, f"it is {kind}")

    return answer


def scraped(api: Kubelet, proxy: bool = False, node: Node | None = NODE) -> Lines:
    """The lines of the first scrapes, as many as come in three seconds."""
    clock = TurnClock()
    return first_scrapes(kubelet_metrics(api, clock, ["n1"], lambda _: node, proxy), clock)


def test_scrapes_and_configuration() -> None:
    api = Kubelet()
    lines = scraped(api)
    first, *rest = lines.all
    assert (first.kind, first.type, first.node) == ("host", "configz", "n1")
    assert msgspec.json.decode(first.object)["shutdownGracePeriod"] == "30s"
    assert b"secret" not in bytes(first.object)
    assert len(rest) >= 2
    entry = decode(rest[0], 0)
    assert entry is not None
    assert (entry.type, entry.node) == ("200", "n1")
    assert entry.object == {
        "kubelet_graceful_shutdown_start_time_seconds": 1795232133.0,
        "kubelet_graceful_shutdown_end_time_seconds": 0.0,
        'kubelet_admission_rejections_total{reason="NodeShutdown"}': 2.0,
    }
    assert set(api.requested) == {"192.0.2.7:10999/configz", "192.0.2.7:10999/metrics"}


@pytest.mark.parametrize(
    ("direct", "through", "proxy", "types", "blind"),
    [
        (fails("refused"), answers, False, {"unreachable"}, False),
        (fails("timeout"), answers, False, {"unreachable"}, False),
        (fails("tls"), answers, False, set(), True),
        (fails("tls"), answers, True, {"200"}, False),
        (status(401), answers, False, {"401"}, False),
        (status(403), answers, True, {"200"}, False),
        (fails("refused"), status(503), True, {"503"}, False),
        (fails("refused"), fails("refused"), True, set(), True),
    ],
)
def test_what_a_failure_means(direct: Answer, through: Answer, proxy: bool, types: set[str], blind: bool) -> None:
    api = Kubelet()
    api.direct, api.proxy = direct, through
    lines = scraped(api, proxy)
    assert {line.type for line in lines.of("metrics")} == types
    assert [line.type for line in lines.of("blind")] == (["metrics@n1"] if blind else [])
    if not proxy:
        assert not any("proxy" in path for path in api.requested), "nodes/proxy only where it is allowed"


def test_an_unknown_address_is_a_blind_window() -> None:
    lines = scraped(Kubelet(), node=None)
    assert [reason for _, _, reason in lines.windows()] == ["the address of n1 is unknown"]


def test_address() -> None:
    assert kubelet_endpoint(NODE) == ("192.0.2.7", 10999)
    assert kubelet_endpoint(Node(status=NodeStatus(addresses=[Address("ExternalIP", "2001:db8::7")]))) == (
        "2001:db8::7",
        10250,
    )
    assert kubelet_endpoint(Node(status=NodeStatus(addresses=[Address("Hostname", "n1")]))) is None
    assert kubelet_endpoint(Node()) is None


def test_undecodable_responses_have_no_effect() -> None:
    assert filter_metrics(b"\xff\n# kubelet_graceful_shutdown_start\n", METRIC_PREFIXES) == []
    assert (
        parse_configz(b"<html>")
        == parse_configz(b"[]")
        == parse_configz(b'{"kubeletconfig":null}')
        == parse_configz(b"\xff")
        == {}
    )
