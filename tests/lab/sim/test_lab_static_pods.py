"""Static pods and their mirrors: facts 1.2, 1.6, 1.8 and 5.6."""

from __future__ import annotations

import pytest

from chaos.lab.cluster import Cluster
from chaos.lab.spec import LabSpec, StaticPod
from tests.kit.simkit import VICTIM, Object, disruption, node, ready, run, spec, started

NAME = f"proxy-{VICTIM}"


def _lab(**settings: int | float | str) -> LabSpec:
    lab = spec()
    lab.nodes[1].static_pods = [StaticPod(name="proxy", priority_class_name="system-node-critical", **settings)]  # type: ignore[arg-type]
    return lab


def _mirror(cluster: Cluster) -> Object:
    found = cluster.store.get("pods", "kube-system", NAME)
    assert found is not None
    return found


def _containers(cluster: Cluster) -> list[str]:
    uid = _mirror(cluster)["metadata"]["annotations"]["kubernetes.io/config.mirror"]
    return [item.state for item in cluster.machines[VICTIM].runtime.containers(uid)]


def test_a_static_pod_runs_and_has_a_mirror() -> None:
    cluster, _ = started(_lab(), recorded=False)
    mirror = _mirror(cluster)
    assert (mirror["status"]["phase"], ready(mirror)["status"]) == ("Running", "True")
    assert mirror["metadata"]["ownerReferences"][0]["kind"] == "Node"
    assert {"operator": "Exists", "effect": "NoExecute"} in mirror["spec"]["tolerations"]
    assert _containers(cluster) == ["running"]


@pytest.mark.parametrize("grace", [None, 0])
def test_a_deleted_mirror_is_recreated_without_a_restart(grace: int | None) -> None:
    cluster, _ = started(_lab(), recorded=False)
    before = _mirror(cluster)
    cluster.delete_object("pods", "kube-system", NAME, grace=grace)
    run(cluster, 3.0)
    after = _mirror(cluster)
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    assert after["status"]["containerStatuses"] == before["status"]["containerStatuses"]


def test_static_pod_stays_ended_after_a_cancelled_shutdown_until_the_kubelet_restarts() -> None:
    """Facts 1.8: Failed although its container exits with 0, and the terminated worker remains."""
    cluster, _ = started(_lab(exit_code=0))
    machine = cluster.machines[VICTIM]
    machine.logind.emit_prepare_for_shutdown(True)
    run(cluster, 3.0)
    machine.logind.emit_prepare_for_shutdown(False)
    run(cluster, 60.0)
    assert ready(node(cluster))["status"] == "True"
    mirror = _mirror(cluster)
    assert (mirror["status"]["phase"], mirror["status"]["reason"]) == ("Failed", "Terminated")
    assert disruption(mirror) == "TerminationByKubelet"
    assert _containers(cluster) == ["exited"]
    machine.kubelet.restart()
    run(cluster, 5.0)
    status = _mirror(cluster)["status"]
    assert (status["phase"], status.get("reason"), ready(_mirror(cluster))["status"]) == ("Running", None, "True")
    assert status["containerStatuses"][0]["restartCount"] == 1
    assert _mirror(cluster)["metadata"]["uid"] == mirror["metadata"]["uid"]


def test_priority_of_a_static_pod_without_a_number() -> None:
    """Facts 1.2: the pod is in the bucket of priority 0, whatever class its file names."""
    cluster, _ = started(_lab(stops_after=8, termination_grace_period_seconds=30), recorded=False)
    assert _mirror(cluster)["spec"]["priority"] == 2_000_001_000
    begin = cluster.sim.now
    cluster.machines[VICTIM].logind.power_off()
    run(cluster, 9.5)
    ended = _mirror(cluster)["status"]["containerStatuses"][0]["state"]
    assert "terminated" in ended
    assert cluster.sim.now - begin < 10.0  # not killed in the critical bucket's 10 s after the others' 20 s


def test_a_reboot_restarts_a_static_pod_in_place() -> None:
    cluster, _ = started(_lab(), recorded=False)
    uid = _mirror(cluster)["metadata"]["uid"]
    cluster.machines[VICTIM].reset()
    run(cluster, 20.0)
    mirror = _mirror(cluster)
    assert (mirror["metadata"]["uid"], mirror["status"]["phase"]) == (uid, "Running")
    assert mirror["status"]["containerStatuses"][0]["restartCount"] == 1


def test_static_pod_starts_without_an_api_server_and_is_mirrored_later() -> None:
    cluster, _ = started(_lab(), recorded=False)
    machine = cluster.machines[VICTIM]
    machine.partition()
    machine.kubelet.stop()
    cluster.delete_object("pods", "kube-system", NAME, grace=0)
    machine.kubelet.start()
    run(cluster, 30.0)
    assert cluster.store.get("pods", "kube-system", NAME) is None
    machine.heal()
    run(cluster, 8.0)
    assert _mirror(cluster)["status"]["phase"] == "Running"
    assert _mirror(cluster)["status"]["containerStatuses"][0]["restartCount"] == 0


def test_static_pod_is_not_evicted_from_an_unreachable_node() -> None:
    """Facts 5.6: a blanket toleration; the mirror is marked not Ready like any pod (facts 5.3)."""
    cluster, _ = started(_lab(), recorded=False)
    cluster.machines[VICTIM].power_off()
    run(cluster, 420.0)
    mirror = _mirror(cluster)
    assert "deletionTimestamp" not in mirror["metadata"]
    assert (mirror["status"]["phase"], ready(mirror)["status"]) == ("Running", "False")
