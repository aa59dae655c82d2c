"""Metrics of controller-managers: which are recorded, what a failure means, and how a lab serves them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from chaos.app.labs import start_lab
from chaos.cluster.client import connect
from chaos.cluster.cluster_state import missing_permissions
from chaos.cluster.errors import KubeUnreachable
from chaos.cluster.observers.metrics import controller_managers, verify_reachable
from chaos.core.decode import decode
from chaos.core.errors import NodefallError
from chaos.core.indexes import LEADER_STATUS, METRIC_PREFIXES, starts_at_zero
from chaos.core.inventory import Inventory
from chaos.core.lab_settings import Lab, Rule
from chaos.core.permission import Permission
from chaos.core.ports import Response
from chaos.core.timeline import Timeline
from tests.kit.misbehaving import Lines
from tests.kit.turn_clock import TurnClock, first_scrapes

FORCED = "attach_detach_controller_attachdetach_controller_forced_detaches"
TEXT = (
    f"# HELP {FORCED} [ALPHA] Number of times the A/D Controller performed a forced detach\n"
    f"# TYPE {FORCED} counter\n"
    f'{FORCED}{{reason="timeout"}} 2\n'
    f"{LEADER_STATUS} 1\n"
    'leader_election_master_status{name="cloud-provider-extraction-migration"} 0\n'
    'node_collector_evictions_number{zone=""} 3\n'
    'node_collector_evictions_total{zone="r:\x00:a"} 3\n'
    'node_collector_zone_health{zone="r:\x00:a"} 66.66666666666667\n'
    'node_collector_update_node_health_duration_seconds_bucket{le="0.001"} 17\n'
    'pod_gc_collector_force_delete_pods_total{namespace="a",reason="orphaned"} 4\n'
    "taint_eviction_controller_pod_deletions_total 1.2e+06\n"
    "taint_eviction_controller_pod_deletion_duration_seconds_count 5\n"
    "process_start_time_seconds 1.79e+09\n"
)
ONE, TWO = "https://192.0.2.1:10257", "https://192.0.2.2:10257"
Answer = Callable[[str], Response]


def answers(status: int = 200, text: str = TEXT) -> Answer:
    return lambda _: Response(status, text.encode(), {})


def fails(kind: str) -> Answer:
    def answer(_: str) -> Response:
        raise KubeUnreachable(kind, f"it is {kind}")

    return answer


def scraped(by_url: dict[str, Answer]) -> Lines:
    """The lines of the first scrapes."""
    clock = TurnClock()
    return first_scrapes(
        controller_managers(list(by_url), lambda url: by_url[url.removesuffix("/metrics")](url), clock), clock
    )


def test_filtered_metrics() -> None:
    lines = scraped({ONE: answers()}).all
    timeline = Timeline()
    for seq, line in enumerate(lines):
        entry = decode(line, seq)
        assert entry is not None
        timeline.add(entry)
    assert timeline.metrics[ONE][0].values == {
        f'{FORCED}{{reason="timeout"}}': 2,
        LEADER_STATUS: 1,
        'node_collector_evictions_total{zone="r:\x00:a"}': 3,
        'node_collector_zone_health{zone="r:\x00:a"}': 66.66666666666667,
        'pod_gc_collector_force_delete_pods_total{namespace="a",reason="orphaned"}': 4,
        "taint_eviction_controller_pod_deletions_total": 1_200_000,
    }


@pytest.mark.parametrize(
    ("answer", "types", "blind"),
    [
        (fails("refused"), {"unreachable"}, []),
        (fails("timeout"), {"unreachable"}, []),
        (fails("tls"), set(), [f"metrics@{ONE}"]),
        (answers(403), {"403"}, []),
    ],
)
def test_a_replica_that_fails_does_not_affect_the_other(answer: Answer, types: set[str], blind: list[str]) -> None:
    lines = scraped({ONE: answer, TWO: answers()})
    statuses = {(line.node, line.type) for line in lines.of("metrics")}
    assert statuses == {(ONE, type_) for type_ in types} | {(TWO, "200")}
    assert [line.type for line in lines.of("blind")] == blind


@pytest.mark.parametrize(("answer", "says"), [(answers(403), "answers 403"), (fails("refused"), "it is refused")])
def test_each_must_be_readable_before_the_run(answer: Answer, says: str) -> None:
    verify_reachable([ONE, TWO], answers())
    with pytest.raises(NodefallError, match=says):
        verify_reachable([ONE, TWO], lambda url: (answer if url.startswith(TWO) else answers())(url))


def test_one_replica_must_be_the_leader() -> None:
    backup = answers(text=TEXT.replace(f"{LEADER_STATUS} 1", f"{LEADER_STATUS} 0"))
    verify_reachable([ONE, TWO], lambda url: (backup if url.startswith(ONE) else answers())(url))
    verify_reachable([ONE], answers(text=TEXT.replace(f"{LEADER_STATUS} 1\n", "")))  # without leader election
    with pytest.raises(NodefallError, match="no leader among the controller-managers"):
        verify_reachable([ONE, TWO], backup)


@pytest.mark.parametrize(
    ("name", "zero"),
    [
        (f'{FORCED}{{reason="out-of-service"}}', True),
        (f'{FORCED}{{reason="other"}}', False),
        (FORCED, False),
        ('pod_gc_collector_force_delete_pod_errors_total{namespace="a",reason="orphaned"}', True),
        ('pod_gc_collector_force_delete_pods_total{namespace="",reason="orphaned"}', False),
        ('pod_gc_collector_force_delete_pods_total{reason="orphaned",namespace="a"}', False),
        ('node_collector_evictions_total{zone=""}', False),
        ("taint_eviction_controller_pod_deletions_total", False),
    ],
)
def test_counters_are_zero_before_they_exist(name: str, zero: bool) -> None:
    assert starts_at_zero(name) is zero
    assert not zero or name.startswith(METRIC_PREFIXES)


def rule(**given: Any) -> Rule:
    return Rule.model_validate({"verbs": ["get"], **given})


@pytest.mark.parametrize("given", [{}, {"resources": ["nodes"], "nonResourceURLs": ["/metrics"]}])
def test_permissions(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="give either resources or nonResourceURLs"):
        rule(**given)


@pytest.mark.lab
@pytest.mark.parametrize("allowed", [True, False])
def test_a_lab_serves_metrics_to_authorized_users(tmp_path: Path, allowed: bool) -> None:
    metrics, nodes = Permission("", "/metrics", "get"), Permission("", "nodes", "get")
    rules = [rule(resources=["nodes"]), *([rule(nonResourceURLs=["/metrics"])] if allowed else [])]
    with start_lab(Lab(workers=1, rights=rules)) as lab:
        inventory: Inventory = lab.inventory
        assert inventory.cluster is not None
        assert inventory.cluster.controller_manager is not None
        kube = connect(inventory.cluster.kubeconfig)
        assert missing_permissions(kube, [metrics, nodes]) == ([] if allowed else [metrics])
        urls = inventory.cluster.controller_manager.urls
        if allowed:
            verify_reachable(urls, kube.component)
        else:
            with pytest.raises(NodefallError, match="answers 403 to /metrics"):
                verify_reachable(urls, kube.component)
