"""Vectors of facts 4, 8.2, 14H and 16."""

from __future__ import annotations

from fractions import Fraction

import msgspec
import pytest

from chaos.lab.apiserver.pods import tolerates
from chaos.lab.controllers.disruption import expected_pod_counts
from chaos.lab.controllers.node_state import Limiter, zone_rate, zone_state
from chaos.lab.controllers.taint_eviction import toleration_seconds
from chaos.lab.node.kubelet.metrics import go_float, read_state_file, state_file
from chaos.lab.node.kubelet.pod_worker import CRITICAL, Bucket, buckets_of, grace_override, group_by_priority
from chaos.lab.objects import Object, parse_quantity, selector_matches, template_hash
from chaos.lab.rules import NodeLifecycleRules, NodeShutdownRules, PodRules
from chaos.lab.spec import NodeSpec, PriorityGrace

RULES = NodeShutdownRules()

_TAINT = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}
_OTHER = {"key": "example.com/gone", "value": "yes", "effect": "NoExecute"}


def test_two_phase_configuration_makes_two_buckets() -> None:
    assert buckets_of(NodeSpec(name="n"), RULES) == [Bucket(0, 20), Bucket(CRITICAL, 10)]


def test_no_grace_period_disables_the_feature() -> None:
    off = NodeSpec(name="n", shutdown_grace_period="0s", shutdown_grace_period_critical_pods="0s")
    assert buckets_of(off, RULES) == []


def test_buckets_by_priority_are_sorted() -> None:
    listed = [PriorityGrace(priority=p, shutdown_grace_period_seconds=s) for p, s in ((1000, 20), (0, 30))]
    node = NodeSpec(
        name="n",
        shutdown_grace_period="0s",
        shutdown_grace_period_critical_pods="0s",
        shutdown_grace_period_by_pod_priority=listed,
    )
    assert buckets_of(node, RULES) == [Bucket(0, 30), Bucket(1000, 20)]


@pytest.mark.parametrize(
    ("priority", "expected"),
    [(-5, 0), (0, 0), (999, 0), (1000, 1), (1_000_000_000, 1), (2_000_000_000, 2), (2_000_001_000, 2)],
)
def test_pod_goes_to_the_greatest_bucket_not_above_it(priority: int, expected: int) -> None:
    buckets = [Bucket(0, 30), Bucket(1000, 20), Bucket(CRITICAL, 10)]
    groups = group_by_priority(buckets, [(priority, "pod")], RULES)
    assert [index for index, members in enumerate(groups) if members] == [expected]


def test_pods_outside_of_the_buckets_are_in_the_first_or_last() -> None:
    buckets = [Bucket(number, 1) for number in (1, 2, 3, 4)]
    assert group_by_priority(buckets, [(number, number) for number in range(6)], RULES) == [
        [0, 1],
        [2],
        [3],
        [4, 5],
    ]


@pytest.mark.parametrize(
    ("bucket", "pod", "stop"), [(20, 120, 20), (20, 5, 5), (20, None, 20), (0, 30, 2), (20, 0, 2), (20, 1, 2)]
)
def test_stop_time_out(bucket: int, pod: int | None, stop: int) -> None:
    grace = grace_override(bucket, pod, NodeShutdownRules())
    assert max(grace, PodRules().minimum_grace_period_seconds) == stop


@pytest.mark.parametrize(
    ("total", "not_ready", "state", "rate"),
    [
        (1, 1, "FullDisruption", 0.1),
        (2, 1, "Normal", 0.1),
        (3, 2, "Normal", 0.1),
        (4, 3, "PartialDisruption", 0.0),
        (5, 3, "PartialDisruption", 0.0),
        (6, 3, "Normal", 0.1),
        (20, 11, "PartialDisruption", 0.0),
        (50, 28, "PartialDisruption", 0.0),
        (51, 28, "Normal", 0.1),
        (51, 29, "PartialDisruption", 0.01),
    ],
)
def test_zone_states(total: int, not_ready: int, state: str, rate: float) -> None:
    rules = NodeLifecycleRules()
    found = zone_state(total - not_ready, not_ready, rules)
    assert (found, zone_rate(found, total, rules)) == (state, rate)


def test_limiter_gives_one_token_and_then_one_in_ten_seconds() -> None:
    limiter = Limiter(0.1, 0.0)
    assert [limiter.take(now) for now in (0.0, 0.1, 9.9, 10.1, 10.2)] == [True, False, False, True, False]


def test_limiter_is_full_again_after_many_small_steps() -> None:
    limiter = Limiter(0.1, 0.0)
    taken = [step for step in range(1, 202) if limiter.take(step / 10)]
    assert taken == [1, 101, 201]


def test_limiter_after_zero_starts_drained() -> None:
    limiter = Limiter(0.1, 0.0)
    limiter.set_rate(0.0, 1.0)
    assert not limiter.take(100.0)
    limiter.set_rate(0.1, 100.0)
    assert [limiter.take(now) for now in (100.0, 109.9, 110.1)] == [False, False, True]


@pytest.mark.parametrize(
    ("spec", "pods", "scales", "expected"),
    [
        ({"minAvailable": 2}, 3, 3, (3, 2)),
        ({"minAvailable": "50%"}, 3, 3, (3, 2)),
        ({"maxUnavailable": "25%"}, 10, 10, (10, 7)),
        ({"maxUnavailable": "25%"}, 3, 3, (3, 2)),
        ({"minAvailable": "100%"}, 3, 3, (3, 3)),
        ({"minAvailable": 2}, 0, 0, (0, 2)),
        ({"maxUnavailable": 5}, 3, 3, (3, 0)),
    ],
)
def test_budget_arithmetic(spec: Object, pods: int, scales: int, expected: tuple[int, int]) -> None:
    assert expected_pod_counts(spec, pods, scales) == expected


@pytest.mark.parametrize(
    ("tolerations", "taints", "expected"),
    [
        ([], [_TAINT], 0.0),
        ([{"operator": "Exists"}], [_TAINT], None),
        ([{"key": _TAINT["key"], "operator": "Exists", "tolerationSeconds": 300}], [_TAINT], 300.0),
        ([{"key": _TAINT["key"], "operator": "Exists", "tolerationSeconds": -1}], [_TAINT], 0.0),
        ([{"key": _TAINT["key"], "operator": "Exists", "tolerationSeconds": 300}], [_TAINT, _OTHER], 0.0),
        ([{"key": _TAINT["key"], "operator": "Exists", "tolerationSeconds": 9}, {"operator": "Exists"}], [_TAINT], 9.0),
        (
            [{"operator": "Exists"}, {"key": _TAINT["key"], "operator": "Exists", "tolerationSeconds": 9}],
            [_TAINT],
            None,
        ),
        ([{"operator": "Exists", "tolerationSeconds": 7}], [_TAINT, _OTHER], 7.0),
    ],
)
def test_first_matching_toleration_of_each_taint_counts(
    tolerations: list[Object], taints: list[Object], expected: float | None
) -> None:
    assert toleration_seconds({"spec": {"tolerations": tolerations}}, taints) == expected


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        ({"key": "example.com/gone", "operator": "Equal", "value": "yes"}, True),
        ({"key": "example.com/gone", "value": "no"}, False),
        ({"key": "example.com/gone", "operator": "Exists", "effect": "NoSchedule"}, False),
        ({"key": "example.com/gone", "operator": "Exists"}, True),
        ({"key": "example.com/other", "operator": "Exists"}, False),
        ({}, False),
    ],
)
def test_toleration(toleration: Object, expected: bool) -> None:
    assert tolerates(toleration, _OTHER) is expected


def test_state_file_in_progress_gives_start_only() -> None:
    text = state_file(1767323045.6, None)
    assert text == '{"startTime":"2026-01-02T03:04:05.6Z","endTime":"0001-01-01T00:00:00Z"}'
    assert read_state_file(text) == (1767323045, 0)


def test_state_file_finished_gives_both() -> None:
    assert read_state_file(state_file(1767323045.6, 1767323052.0)) == (1767323045, 1767323052)


@pytest.mark.parametrize("text", ["", "{", '{"startTime":"x","endTime":"y"}', '{"startTime":"2026-01-02T03:04:05Z"}'])
def test_invalid_state_file_is_an_error(text: str) -> None:
    with pytest.raises((msgspec.DecodeError, KeyError, ValueError)):
        read_state_file(text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (1, "1"),
        (110, "110"),
        (999999, "999999"),
        (1000000, "1e+06"),
        (1795232137, "1.795232137e+09"),
        (1795231586.42, "1.79523158642e+09"),
        (0.25, "0.25"),
        (0.00001, "1e-05"),
    ],
)
def test_go_floats(value: float, text: str) -> None:
    assert go_float(value) == text


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (None, False),
        ({}, True),
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchLabels": {"app": "db"}}, False),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "db"]}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}, False),
        ({"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}, True),
        ({"matchExpressions": [{"key": "tier", "operator": "Exists"}]}, False),
    ],
)
def test_selector(selector: Object | None, expected: bool) -> None:
    assert selector_matches(selector, {"app": "web"}) is expected


def test_template_hash_changes_with_the_template_only() -> None:
    first = {"metadata": {"labels": {"a": "b"}}, "spec": {"x": 1}}
    assert template_hash(first) == template_hash({"spec": {"x": 1}, "metadata": {"labels": {"a": "b"}}})
    assert template_hash(first) != template_hash({"spec": {"x": 2}, "metadata": {"labels": {"a": "b"}}})
    assert set(template_hash(first)) <= set("bcdfghjklmnpqrstvwxz2456789")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("10m", 0.01),
        ("1.5", 1.5),
        (".5", 0.5),
        ("8Mi", 8388608),
        ("1k", 1000),
        ("1e3", 1000),
        ("2E", 2e18),
        (3, 3),
    ],
)
def test_quantity(text: str | int, value: float) -> None:
    assert parse_quantity(text) == Fraction(value).limit_denominator(1000)


@pytest.mark.parametrize("text", ["", "m", "1mi", "1 Gi", "1e", "0x10", "1KI", "\u0661"])
def test_invalid_quantities(text: str) -> None:
    with pytest.raises(ValueError, match="not a quantity"):
        parse_quantity(text)
