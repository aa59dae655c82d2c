"""Facts of any API object, by JSON pointer.

Responses of broken or malicious servers are errors or left out, and never an unexpected exception.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.cluster.cluster_state import ApiFacts, UnknownFact
from chaos.cluster.errors import KubeUnreachable
from chaos.cluster.observers.metrics import KUBELET_PREFIXES as METRIC_PREFIXES
from chaos.cluster.observers.metrics import filter_metrics, parse_configz
from chaos.cluster.observers.promql import _series
from chaos.core.api_fact import field, labels_fact, object_fact, taint_fact, unschedulable_fact
from chaos.core.decode import _metrics
from chaos.core.errors import NodefallError
from chaos.core.ports import Response
from tests.kit.fakes import FakeKube
from tests.kit.misbehaving import KubeServer, plain_api, serving

NODE = {
    "metadata": {"annotations": {"a.b/c": "x", "t~1": "y"}, "labels": {"a.b/zone": "a", "added": ""}},
    "spec": {"unschedulable": True, "taints": [{"key": "k", "effect": "NoSchedule"}, {"key": "k", "value": "v"}]},
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just(10**400),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["metric", "value", "values", "kubeletconfig", "x"]), inner, max_size=4)
    ),
    max_leaves=12,
)
LINES = st.lists(
    st.text(max_size=30)
    | st.sampled_from(
        ["kubelet_graceful_shutdown_start_time_seconds", "kubelet_graceful_shutdown_end_time_seconds"]
    ).flatmap(lambda name: st.text(max_size=20).map(lambda rest: f"{name}{rest}")),
    max_size=6,
)


def read(fact: str, status: int = 200, body: bytes = json.dumps(NODE).encode()) -> Any:
    assert ApiFacts.supports(fact)
    return ApiFacts(FakeKube({"/api/v1/nodes/n1": Response(status, body, {})})).read("n1", fact)


@pytest.mark.parametrize(
    ("fact", "value"),
    [
        (unschedulable_fact("n1"), True),
        (unschedulable_fact("n2"), None),
        (taint_fact("k", "NoSchedule"), ""),
        (taint_fact("k", "NoExecute"), None),
        (object_fact("/api/v1/nodes/n1", "/metadata/annotations/a.b~1c"), "x"),
        (object_fact("/api/v1/nodes/n1", "/spec/taints/1/value"), "v"),
        (object_fact("/api/v1/nodes/n1", "/spec/taints/7/value"), None),
        (object_fact("/api/v1/nodes/n1", "/metadata/annotations/none/deeper"), None),
        (labels_fact(["a.b/zone", "lost"]), {"a.b/zone": "a"}),
        (labels_fact([]), {}),
        ("namespace/gone", "gone"),
    ],
)
def test_objects_that_exist_and_that_do_not(fact: str, value: Any) -> None:
    assert read(fact) == value


@pytest.mark.parametrize(
    ("owners", "value"),
    [
        ({}, True),  # unknown: of a server without managed fields
        ({"nodefall": "2026-01-01T00:00:00Z"}, True),
        ({"nodefall": "2026-01-01T00:00:00Z", "kubectl": "2026-01-02T00:00:00Z"}, False),
        ({"kubectl": "2026-01-02T00:00:00Z"}, False),
    ],
)
def test_whose_cordon_it_is(owners: dict[str, str], value: bool) -> None:
    fields: dict[str, Any] = {"fieldsV1": {"f:spec": {"f:unschedulable": {}}}}
    entries = [{"manager": name, "operation": "Update", "time": time} | fields for name, time in owners.items()]
    node = {"metadata": {"managedFields": entries}, "spec": {"unschedulable": True}}
    assert read("cordoned-by-nodefall", body=json.dumps(node).encode()) is value
    assert read("cordoned-by-nodefall", body=json.dumps(node | {"spec": {}}).encode()) is False
    assert read("cordoned-by-nodefall", 404) is False


def test_a_pointer_can_name_anything() -> None:
    assert field(NODE, "/metadata/annotations/t~01") == "y"
    assert field(NODE, "") == NODE


def test_unknown_is_not_absent() -> None:
    with pytest.raises(UnknownFact, match="answered 503"):
        read(unschedulable_fact("n1"), 503)
    with pytest.raises(UnknownFact):
        read(unschedulable_fact("n1"), 200, b"<html>")
    with pytest.raises(UnknownFact, match="answered 404"):
        read("node-ready", 404)


def test_facts_of_hosts_are_not_api_facts() -> None:
    assert not ApiFacts.supports("machine")
    assert not ApiFacts.supports("kubelet-state")


@given(JSON)
def test_series(answer: Any) -> None:
    try:
        found = _series(answer, "up")
    except NodefallError:
        return
    assert all(isinstance(t, float) for series in found for t, _ in series.values)


@given(JSON)
def test_configuration(answer: Any) -> None:
    assert isinstance(parse_configz(json.dumps(answer).encode()), dict)


@given(LINES, st.binary(max_size=20))
def test_metrics(lines: list[str], junk: bytes) -> None:
    """Each metric is one line; a value that is no number is an undecodable sample."""
    found = filter_metrics("\n".join(lines).encode("utf-8", "surrogatepass") + junk, METRIC_PREFIXES)
    assert all("\n" not in line for line in found)
    try:
        assert all(isinstance(value, float) for value in _metrics(found).values())
    except ValueError:  # decode() makes a blind window of it
        return


def test_an_over_long_line_is_not_recorded() -> None:
    name = "kubelet_graceful_shutdown_start_time_seconds"
    assert filter_metrics(f"{name} {'1' * 5000}\n{name} 1.5\n".encode(), METRIC_PREFIXES) == [f"{name} 1.5"]


@pytest.mark.parametrize(
    "address", ["", "evil.example", "10.0.0.1/x@evil", "10.0.0.1:1/", "fe80::1%x/../", "a b", "[::1]"]
)
def test_credentials_are_sent_to_ip_addresses_only(tmp_path: Path, address: str) -> None:
    with pytest.raises(KubeUnreachable, match="not an IP address"):
        plain_api(tmp_path, 1).kubelet(address, 10250, "/metrics")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(tmp_path: Path, status: int) -> None:
    """It would take the token of the kubeconfig to another server."""
    elsewhere, state = KubeServer(), KubeServer()
    state.answers["/version"] = (status, b"")
    with serving(elsewhere) as other, serving(state) as port:
        state.redirect = f"http://127.0.0.1:{other}/version"
        assert plain_api(tmp_path, port).request("GET", "/version").status == status
    assert (len(state.requests), elsewhere.requests) == (1, [])
