"""LabSpec: decoding and validation."""

from __future__ import annotations

import pytest

from chaos.lab.spec import LabSpec, SpecError, parse_duration
from tests.kit.simkit import spec

_BUCKET = b'{"priority": 0, "shutdownGracePeriodSeconds": 5}'
_BY_PRIORITY = b'{"nodes": [{"name": "a", "shutdownGracePeriodByPodPriority": [%s]}]}' % _BUCKET


def test_defaults_match_kubernetes() -> None:
    lab = LabSpec.from_json(b'{"nodes": [{"name": "a"}]}')
    assert (lab.controllers.node_monitor_grace_period, lab.controllers.node_eviction_rate) == (50.0, 0.1)
    assert (lab.nodes[0].role, lab.nodes[0].shutdown_grace_period, lab.nodes[0].systemd) == ("worker", "30s", 252)


def test_json_round_trip() -> None:
    lab = spec(seed=7, inhibitor_lost_after_cancel="always")
    assert LabSpec.from_json(lab.to_json()) == lab
    assert b"inhibitorLostAfterCancel" in lab.to_json()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "LabSpec"),
        (b"{}", "missing required field `nodes`"),
        (b'{"nodes": []}', "nodes is empty"),
        (b'{"nodes": [{"name": "a", "colour": "red"}]}', "unknown field `colour`"),
        (b'{"nodes": [{"name": "a"}], "sped": 1}', "unknown field `sped`"),
        (b'{"nodes": [{"name": "a"}, {"name": "a"}]}', "same name"),
        (b'{"nodes": [{"name": "a", "role": "boss"}]}', "boss"),
        (b'{"nodes": [{"name": "a", "shutdownGracePeriod": "5s"}]}', "longer than shutdownGracePeriod"),
        (b'{"nodes": [{"name": "a", "shutdownGracePeriod": "five"}]}', "not a duration"),
        (b'{"nodes": [{"name": "a", "shutdownGracePeriodCriticalPods": "500ms"}]}', "at least 1 s"),
        (b'{"nodes": [{"name": "a", "systemd": 249}]}', "systemd 249"),
        (b'{"nodes": [{"name": "a", "swap": "2Gi"}]}', "a: the kubelet cannot start: swap is on and failSwapOn is set"),
        (b'{"nodes": [{"name": "a", "swap": "much", "failSwapOn": false}]}', "'much' is not a quantity"),
        (
            _BY_PRIORITY,
            "excludes shutdownGracePeriod",
        ),
        (b'{"nodes": [{"name": "a"}], "namespaces": ["default"]}', "lacks kube-node-lease, kube-system"),
        (b'{"nodes": [{"name": "a"}], "inhibitorLostAfterCancel": "perhaps"}', "perhaps"),
        (b'{"nodes": [{"name": "\xff"}]}', "LabSpec"),
        (
            b'{"nodes": [{"name": "a"}], "breakages": ["evicton-late"]}',
            "unknown breakage 'evicton-late'; did you mean: eviction-late",
        ),
        (b'{"nodes": [{"name": "a"}], "breakages": ["0"]}', "unknown breakage '0'$"),
    ],
)
def test_invalid_specs(text: bytes, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        LabSpec.from_json(text)


@pytest.mark.parametrize(
    ("text", "value"), [("0", 0), ("0s", 0), ("30s", 30), ("1m30s", 90), ("1.5h", 5400), ("250ms", 0.25)]
)
def test_durations(text: str, value: float) -> None:
    assert parse_duration(text) == value


@pytest.mark.parametrize("text", ["", "5", "s", "-5s", "5 s", "5s!", "5x"])
def test_invalid_durations(text: str) -> None:
    with pytest.raises(SpecError, match="not a duration"):
        parse_duration(text)
