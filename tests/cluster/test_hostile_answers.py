"""Responses of broken or malicious servers are errors or left out, and never an unexpected exception."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.cluster.errors import KubeUnreachable
from chaos.cluster.observers.metrics import KUBELET_PREFIXES as METRIC_PREFIXES
from chaos.cluster.observers.metrics import filter_metrics, parse_configz
from chaos.cluster.observers.promql import _series
from chaos.core.decode import _metrics
from chaos.core.errors import NodefallError
from tests.kit.misbehaving import KubeServer, plain_api, serving

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
