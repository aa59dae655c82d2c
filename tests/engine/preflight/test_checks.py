"""Each check, on clusters that are in order and on some that are not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from chaos.core.api_fact import PseudoFact
from chaos.core.errors import Refused
from chaos.core.kube import Node, Pod
from chaos.core.node_mark import FoundMark, NodeMark
from chaos.core.permission import Permission
from chaos.core.power_identity import PowerRisk
from chaos.core.result import PendingUndoFinding, Source
from chaos.engine.observations import (
    BUDGETS,
    DAEMONSETS,
    DEPLOYMENTS,
    HEALTH_CHECKS,
    MUTATING,
    NODE_HEALTH_CHECKS,
    SLICES,
    VALIDATING,
    ClusterObservations,
    HostObservations,
    Need,
    machines_of,
)
from chaos.engine.preflight.check import Severity
from tests.kit.preflightkit import CHECKS, USE, diagnoses, host, inventory, messages, node, observed, pod

SLOW_DISK = "/run/systemd/transient/kubepods.slice.d/50-IOReadIOPSMax.conf"


def str_only(value: object) -> str:
    return value if isinstance(value, str) else ""


def test_a_cluster_that_is_in_order() -> None:
    healthy = observed(host("n1"), host("n2"))
    for name in CHECKS:
        for diagnosis in diagnoses(name, healthy):
            assert diagnosis.severity is Severity.OK, (name, diagnosis)


def workload(image: str, replicas: int | None = 1) -> dict[str, Any]:
    spec: dict[str, Any] = {"template": {"spec": {"containers": [{"image": image}]}}}
    spec |= {} if replicas is None else {"replicas": replicas}
    return {"metadata": {"namespace": "kube-system", "name": "w"}, "spec": spec}


def webhook(policy: str | None = None) -> dict[str, Any]:
    hook = {"name": "check.example", "clientConfig": {"service": {"namespace": "a", "name": "s"}}}
    outside = {"name": "url", "clientConfig": {"url": "https://elsewhere.example"}}
    return {"webhooks": [hook | ({"failurePolicy": policy} if policy else {}), outside]}


def endpoints(*nodes: str, ready: bool | None = True) -> dict[str, Any]:
    found = [{"nodeName": name, "conditions": {"ready": ready}} for name in nodes]
    return {"metadata": {"namespace": "a", "labels": {"kubernetes.io/service-name": "s"}}, "endpoints": found}


def health_check(labels: dict[str, str] | None = None, **metadata: Any) -> dict[str, Any]:
    selector = {"matchLabels": labels} if labels else {}
    return {"metadata": {"namespace": "c", "name": "m"} | metadata, "spec": {"selector": selector}}


def machine(node: str | None, namespace: str = "c", **labels: str) -> dict[str, Any]:
    status = {"nodeRef": {"name": node}} if node else {}
    return {"metadata": {"namespace": namespace, "labels": labels}, "status": status}


def node_check(*pauses: str, role: str = "worker") -> dict[str, Any]:
    selector = {"matchExpressions": [{"key": f"{ROLE}/{role}", "operator": "Exists"}]}
    return {"metadata": {"name": "w"}, "spec": {"selector": selector, "pauseRequests": [*pauses]}}


def budget(allowed: int | None) -> dict[str, Any]:
    status = {} if allowed is None else {"disruptionsAllowed": allowed}
    selector = {"matchLabels": {"app": "web"}}
    return {"metadata": {"namespace": "default", "name": "b"}, "spec": {"selector": selector}, "status": status}


ROLE = "node-role.kubernetes.io"
PATHS = {
    "deployments": DEPLOYMENTS,
    "daemonsets": DAEMONSETS,
    "budgets": BUDGETS,
    "slices": SLICES,
    "validating": VALIDATING,
    "mutating": MUTATING,
    "mhc": HEALTH_CHECKS[0],
    "machines": machines_of(HEALTH_CHECKS[0]),
    "openshift": HEALTH_CHECKS[2],
    "openshift_machines": machines_of(HEALTH_CHECKS[2]),
    "nhc": NODE_HEALTH_CHECKS,
}


def having(*hosts: HostObservations, unread: Sequence[str] = (), **given: Any) -> ClusterObservations:
    """A cluster with these objects, by names of PATHS; those in ``unread`` may not be listed."""
    lists = {path: given.get(key, []) for key, path in PATHS.items() if key not in unread}
    return observed(*hosts, lists=lists, **{key: value for key, value in given.items() if key not in PATHS})


def dns(name: str, on: str) -> Pod:
    return pod(name, on, namespace="kube-system", labels={"k8s-app": "kube-dns"})


def planes(*names: str, ill: str = "", label: str = f"{ROLE}/control-plane") -> tuple[Node, ...]:
    return tuple(node(name, labels={label: ""}, ready=name not in ill) for name in names)


def static_pod(name: str, on: str) -> Pod:
    return pod(name, on, namespace="kube-system", annotations={"kubernetes.io/config.mirror": "x"})


ETCD_DATA = "/var/lib/rancher/k3s/server/db/etcd/member"
APP = {"app": "web"}
WEB = (pod("web-1", "n1", labels=APP), pod("web-2", "n1", labels=APP), pod("web-3", "n2", labels=APP))
IGNORING = inventory(limits={"budgets": "ignore"})
BOTH = (host("n1"), host("n2"))
WORKER = (node("n1", "10.0.0.1", labels={f"{ROLE}/worker": ""}),)
KARPENTER = (node("n1", "10.0.0.1", labels={"karpenter.sh/nodepool": "default"}),)
RULES: list[tuple[str, ClusterObservations, str, str]] = [
    (
        "permissions",
        observed(experiments=(replace(USE, missing_permissions=(Permission("", "pods", "list"),)),)),
        "refusal",
        "may not list pods",
    ),
    ("api-connection", observed(connection_risks=("it is not verified",)), "warning", "it is not verified"),
    ("lock", observed(lock_holder="ann@a/1"), "refusal", "ann@a/1 has a run on"),
    ("lock", observed(list_errors={"leases": "403: no"}), "note", "leases could not be listed: 403: no"),
    (
        "pending-undo",
        observed(pending_undo=(PendingUndoFinding("r-1", Source.JOURNAL, "stop on n1", "undo it"),)),
        "refusal",
        "run r-1 has a pending undo: stop on n1",
    ),
    (
        "pending-undo",
        observed(
            pending_undo=(PendingUndoFinding("r-1", Source.CLUSTER, "stop on n1", "undo it"),),
            lock_holder="ann@a/1",
            lock_run="r-1",
        ),
        "note",
        "run r-1 is under way, by ann@a/1: its undo is still pending stop on n1",
    ),
    (
        "pending-undo",
        observed(
            pending_undo=(PendingUndoFinding("r-1", Source.CLUSTER, "stop on n1", "undo it"),),
            lock_holder="ann@a/1",
            lock_run="r-2",
        ),
        "refusal",
        "run r-1 has a pending undo: stop on n1",
    ),
    (
        "pending-undo",
        observed(pending_undo=(PendingUndoFinding("", Source.NODE, "unknown", "undo it"),), lock_holder="ann@a/1"),
        "refusal",
        "an unknown run has a pending undo: unknown",
    ),
    (
        "pending-undo",
        observed(stale_marks=(FoundMark("n1", "k", NodeMark("r-1", "stop", cordoned=False), "7"),)),
        "note",
        "n1 has the mark of an earlier run (stop on n1), but the values from before that step",
    ),
    ("pending-undo", observed(list_errors={"nodes": "403: no"}), "note", "nodes could not be listed: 403: no"),
    ("host-reachable", observed(replace(host(), error="n1: no route")), "refusal", "n1: no route"),
    ("openssh", observed(transport_problems={"n1": (Refused("no ssh", hint="get one"),)}), "refusal", "n1: no ssh"),
    ("sudo", observed(host(root=False)), "refusal", "n1: commands do not run as root"),
    ("sudo", observed(host(without="root")), "refusal", "do not run as root: no answer"),
    (
        "failsafe-timers",
        observed(host(failsafe_timers=["nodefall-x.timer"])),
        "refusal",
        "n1 still has nodefall-x.timer of",
    ),
    ("leftovers", observed(host(nft_rules={"packets": 0})), "refusal", "n1 has the packet filter table of an earlier"),
    ("leftovers", observed(host(netem={"interface": "eth0"})), "refusal", "n1 has a queueing discipline of an earlier"),
    ("leftovers", observed(host(netem={"interface": "nodefall0"})), "refusal", "n1 has a queueing discipline"),
    ("leftovers", observed(host(disk_filler="active")), "refusal", "n1 has nodefall-disk-filler.service of an earlier"),
    ("leftovers", observed(host(memory_filler="deactivating")), "refusal", "nodefall-memory-filler.service"),
    ("leftovers", observed(host(pid_filler="active")), "refusal", "which is active"),
    ("leftovers", observed(host(cpu_filler="active")), "refusal", "n1 has nodefall-cpu-filler.service of an earlier"),
    (
        "leftovers",
        observed(host(kubelet_client_certificate={"target": "/x.pem", "mounted": True, "prepared": True})),
        "refusal",
        "n1 has an expired certificate for the kubelet",
    ),
    (
        "leftovers",
        observed(host(kubelet_client_certificate={"target": "/x.pem", "mounted": False, "prepared": True})),
        "refusal",
        "n1 has an expired certificate for the kubelet",
    ),
    ("leftovers", observed(host(clock_skew=-30)), "refusal", "n1 has a clock that an earlier run has set off by -30 s"),
    (
        "leftovers",
        observed(host(kubelet_cpu_quota={"percent": 5.0, "runtime": True, "stale": False})),
        "refusal",
        "n1 has a kubelet with a CPU quota that was set at run time",
    ),
    (
        "leftovers",
        observed(host(etcd_manifest={"sha256": "9f", "mounted": True})),
        "refusal",
        "n1 has a manifest of etcd over which something is mounted",
    ),
    (
        "leftovers",
        observed(host(disk_limit_files=[SLOW_DISK])),
        "refusal",
        f"n1 has limits of a disk that were set at run time ({SLOW_DISK})",
    ),
    (
        "leftovers",
        observed(host(firewall_rules=["nodefall-r1-cut"])),
        "refusal",
        "n1 has the firewall rules nodefall-r1-cut of an earlier run",
    ),
    ("leftovers", observed(host(kubelet_stopped_state=True)), "refusal", "n1 has a kubelet that SIGSTOP has stopped"),
    (
        "kubelet-unit",
        observed(host(without="kubelet-unit")),
        "warning",
        "the kubelet's unit is unknown: ",
    ),
    ("kubelet-unit", observed(host(kubelet_unit="k3s.service")), "note", "k3s.service runs the control plane"),
    (
        "logind",
        observed(host(without="inhibitor-locks")),
        "refusal",
        "logind does not answer, so no shutdown is graceful",
    ),
    (
        "logind",
        observed(host(without="inhibitor-locks", shared_kernel=True)),
        "refusal",
        "a stock image of kind has neither D-Bus nor logind, so its kubelet cannot take the lock",
    ),
    (
        "kubelet-inhibitor",
        observed(host(inhibitor_kubelet=False)),
        "refusal",
        "the kubelet does not hold its delay lock",
    ),
    (
        "inhibit-delay",
        observed(host(inhibit_delay_max="t 5000000")),
        "refusal",
        "waits 5s at most, the kubelet needs 30s",
    ),
    ("kubelet-config", observed(host(configz={})), "warning", "configuration could not be read"),
    ("kubelet-config", observed(host(configz={"shutdownGracePeriod": "0s"})), "refusal", "shutdownGracePeriod is 0"),
    (
        "kubelet-config",
        observed(host(configz={"shutdownGracePeriod": "5s", "shutdownGracePeriodCriticalPods": "10s"})),
        "refusal",
        "both are ignored",
    ),
    ("systemd-version", observed(host(without="systemd-version")), "warning", "no systemd: no answer"),
    (
        "systemd-version",
        observed(host(systemd_version=249)),
        "warning",
        "before 251, shutdown, reboot and poweroff of root bypass logind",
    ),
    ("systemd-version", observed(host(systemd_version=257)), "note", "without notice to the kubelet"),
    ("shared-kernel", observed(host(shared_kernel=True)), "note", "the machine is a container"),
    (
        "container-list",
        observed(host(without="runtime-client")),
        "refusal",
        "n1: its running containers cannot be listed: no answer",
    ),
    (
        "container-list",
        observed(host(runtime_client="/usr/bin/ctr", runtime_socket="/run/crio/crio.sock")),
        "refusal",
        "/usr/bin/ctr speaks only to containerd, not to /run/crio/crio.sock",
    ),
    (
        "clock",
        observed(replace(host(), clock_offset=-7.0, clock_uncertainty=0.1)),
        "warning",
        "its clock is 7.0 s behind the local clock",
    ),
    (
        "clock",
        observed(replace(host(), clock_offset=1.4, clock_uncertainty=0.1)),
        "warning",
        "1.4 s ahead of the local clock",
    ),
    ("power-recovery", observed(host(power="")), "warning", "n1 has no power control"),
    (
        "power-recovery",
        observed(host(power="", power_error="the power control of n1: 401")),
        "refusal",
        "of n1: 401",
    ),
    ("static-pods", observed(host(static=("etcd-n1",))), "note", "n1 runs static pods (etcd-n1)"),
    ("remediators", having(deployments=[workload("gcr.io/cluster-autoscaler:v1")]), "warning", "autoscaler (kube"),
    ("remediators", having(daemonsets=[workload("ghcr.io/kured:1", None)]), "warning", "kured (kube-system/w)"),
    ("remediators", having(daemonsets=[workload("x/node-problem-detector")]), "note", "sets conditions"),
    ("remediators", observed(nodes=KARPENTER), "warning", "n1 is a node of Karpenter"),
    ("remediators", having(mhc=[health_check()], unread=["machines"]), "refusal", "c/m replaces machines whose nodes"),
    (
        "remediators",
        having(mhc=[health_check(APP)], machines=[machine("n1", **APP)]),
        "refusal",
        "c/m replaces the mach",
    ),
    ("remediators", having(mhc=[health_check()], machines=[machine("n1")]), "refusal", "the machine of n1 if it stays"),
    (
        "remediators",
        having(openshift=[health_check(APP)], openshift_machines=[machine("n1", **APP), machine("n9", **APP)]),
        "refusal",
        "MachineHealthCheck c/m replaces the machine of n1",
    ),
    ("remediators", having(nhc=[node_check()], nodes=WORKER), "refusal", "NodeHealthCheck w remediates n1"),
    ("remediators", having(nhc=[{"metadata": {"name": "w"}, "spec": {}}]), "refusal", "NodeHealthCheck w remediates"),
    ("remediators", observed(list_errors={DEPLOYMENTS: "403"}), "note", "deployments could not be listed"),
    ("webhooks", having(validating=[webhook()], slices=[endpoints("n1")]), "refusal", "its 1 endpoint(s) on n1"),
    ("webhooks", having(mutating=[webhook("Ignore")], slices=[endpoints("n1", "n1")]), "note", "its 2 endpoint(s)"),
    ("webhooks", having(validating=[webhook()], slices=[endpoints("n1", ready=False)]), "warning", "no ready end"),
    ("webhooks", observed(list_errors={VALIDATING: "403"}), "note", "validatingwebhookconfigurations could not be"),
    ("coredns", observed(pods=(dns("c-1", "n1"), dns("c-2", "n1"))), "warning", "all 2 CoreDNS pod(s) run on n1"),
    ("stateful-grace", observed(pods=(pod("db-0", "n1", owner="StatefulSet", grace=0),)), "warning", "default/db-0"),
    ("budgets", having(budgets=[budget(1)], pods=WEB), "refusal", "allows 1 disruption(s), and 2 of its pods"),
    ("budgets", having(budgets=[budget(1)], pods=WEB, inventory=IGNORING), "note", "limits.budgets is ignore"),
    (
        "budgets",
        having(*BOTH, budgets=[budget(2)], pods=WEB, hosts_are_targets=True),
        "refusal",
        "n1, n2: budget default/b",
    ),
    (
        "quorum",
        observed(host("a"), nodes=planes("a")),
        "refusal",
        "without a only 0 of 1 control planes would be Ready",
    ),
    ("quorum", observed(host("a"), nodes=planes("a", "b", ill="b")), "refusal", "without a only 0 of 2"),
    (
        "quorum",  # etcd on separate nodes, shown by its static pods
        observed(
            host("a"),
            nodes=(*planes("p", "q", "r"), node("a"), node("b", ready=False), node("c")),
            pods=tuple(static_pod(f"etcd-{name}", name) for name in "abc"),
        ),
        "refusal",
        "without a only 1 of 3",
    ),
    (
        "quorum",  # shown by the hosts only
        observed(host("a", control_plane_files=[ETCD_DATA]), nodes=(node("a"), *planes("p", "q", ill="pq"))),
        "refusal",
        "without a only 0 of 3",
    ),
    (
        "protected-role",
        observed(host("n1", control_plane_files=[ETCD_DATA])),
        "refusal",
        f"n1 has no role label of the control plane, but {ETCD_DATA} exists",
    ),
    (
        "protected-role",
        observed(host("n1", control_plane_files=[ETCD_DATA]), inventory=inventory(protected={"roles": []})),
        "note",
        "n1 has no role label of the control plane",
    ),
    ("quorum", observed(host("a"), nodes=planes("a", "b", "c", ill="b")), "refusal", "without a only 1 of 3"),
    (
        "quorum",
        observed(host("a"), host("b"), nodes=planes("a", "b", "c"), hosts_are_targets=True),
        "refusal",
        "without a, b only 1",
    ),
    (
        "targets",
        observed(experiments=(replace(USE, target_error=("target v wants 4", "")),)),
        "refusal",
        "x: target v wants 4",
    ),
    (
        "prometheus",
        observed(experiments=(replace(USE, source_errors={"prometheus": ("no route", "")}),)),
        "refusal",
        "x: no route",
    ),
    (
        "controller-manager",
        observed(experiments=(replace(USE, source_errors={"controller-manager": ("403", ""), "prometheus": ()}),)),
        "refusal",
        "x: 403",
    ),
    (
        "steps",
        observed(experiments=(replace(USE, step_error={"n1": ("step s: no", "")}.get),)),
        "refusal",
        "step s: no",
    ),
]


@pytest.mark.parametrize(
    ("check", "observations", "severity", "text"), RULES, ids=lambda v: v if isinstance(v, str) else ""
)
def test_what_is_not_in_order(check: str, observations: ClusterObservations, severity: str, text: str) -> None:
    bad = [(found, message) for found, _, message in messages(check, observations) if found != "ok"]
    assert [found for found, _ in bad] == [severity]
    assert text in bad[0][1]


def test_every_check_has_a_rule() -> None:
    """Some have separate tables."""
    others = {
        "self-protection",
        "kubelet-requirements",
        "kubernetes-version",
        "host-identity",
        "helper-pods",
        "host-key",
        "power-identity",
        "power-provider",
    }
    linux = {name for name, check in CHECKS.items() if "linux" in check.systems}
    assert {rule[0] for rule in RULES} | others == linux


NO_FINDING = [
    ("leftovers", observed(host(without="nft-rules"))),
    ("leftovers", observed(host(netem=False))),
    ("leftovers", observed(host(disk_limit_files=[]))),
    ("leftovers", observed(host(etcd_manifest={"sha256": "9f", "mounted": False}))),
    ("leftovers", observed(host(pid_filler="failed"))),
    ("quorum", observed(host("a"), nodes=planes("a", "b", "c"))),
    ("quorum", observed(host("a"), host("b"), nodes=planes("a", "b", "c"))),
    (
        "quorum",
        observed(host("a"), nodes=(*planes("a", label=f"{ROLE}/master"), *planes("b", "c", "d", label=f"{ROLE}/etcd"))),
    ),
    ("protected-role", observed(host("a", control_plane_files=[ETCD_DATA]), nodes=planes("a", label=f"{ROLE}/etcd"))),
    ("budgets", having(*BOTH, budgets=[budget(2)], pods=WEB)),  # one of them at a time
    ("budgets", having(budgets=[budget(None)], pods=WEB)),
    ("budgets", having(budgets=[budget(0)], pods=(pod("web-9", "n1", namespace="other", labels={"app": "web"}),))),
    ("webhooks", having(validating=[webhook()], slices=[endpoints("n1", "n2")])),
    ("webhooks", having(validating=[webhook()], unread=["slices"])),  # its endpoints are unknown
    ("coredns", observed(pods=(dns("c-1", "n1"), dns("c-2", "n2")))),
    ("remediators", having(deployments=[workload("karpenter", 0)])),
    ("remediators", having(mhc=[health_check(annotations={"cluster.x-k8s.io/paused": ""})], unread=["machines"])),
    ("remediators", having(mhc=[health_check(APP)], machines=[machine("n1"), machine("n9", **APP)])),
    ("remediators", having(mhc=[health_check()], machines=[machine("n1", "other"), machine(None)])),
    ("remediators", having(openshift=[health_check()], machines=[machine("n1")])),
    ("remediators", having(nhc=[node_check("a person")], nodes=WORKER)),
    ("remediators", having(nhc=[node_check(role="storage")], nodes=WORKER)),
    ("kubelet-inhibitor", observed(host(inhibitor_kubelet=False, configz={"shutdownGracePeriod": "0s"}))),
    ("inhibit-delay", observed(host(without="inhibit-delay-max"))),
    ("inhibit-delay", observed(host(inhibit_delay_max="t 5000000", configz={}))),
    ("clock", observed(replace(host(), clock_offset=1.4, clock_uncertainty=0.5))),
    ("stateful-grace", observed(pods=(pod("job-0", "n1", owner="Job", grace=0),))),
]


@pytest.mark.parametrize(("check", "observations"), NO_FINDING, ids=str_only)
def test_no_finding(check: str, observations: ClusterObservations) -> None:
    assert [found for found in messages(check, observations) if found[0] != "ok"] == []


@pytest.mark.parametrize("check", sorted(set(CHECKS) - {"host-reachable"}))
def test_a_host_that_does_not_answer_is_one_finding(check: str) -> None:
    silent = observed(replace(host(), target=replace(host().target, facts={}, power=""), error="n1: no route"))
    assert [found for found in messages(check, silent) if found[0] == "refusal"] == []


@pytest.mark.parametrize(
    ("needs", "when_not_ready", "is_refused"),
    [
        ({Need.DOWN}, False, True),
        ({Need.ENDS_PODS}, False, False),
        ({Need.ENDS_PODS}, True, True),
        (set(), True, False),
    ],
)
def test_a_provider_that_would_replace_the_machine(needs: set[Need], when_not_ready: bool, is_refused: bool) -> None:
    risk = PowerRisk("its group terminates it", "suspend it", when_not_ready)
    experiment = replace(USE, needs=frozenset(needs), nodes=("n1",))
    found = diagnoses("power-provider", observed(replace(host(), power_risks=(risk,)), experiments=(experiment,)))
    (diagnosis,) = found
    assert (diagnosis.severity, diagnosis.message, diagnosis.hint) == (
        Severity.REFUSAL, "n1: its group terminates it", "suspend it"
    )  # fmt: skip
    assert diagnosis.affects(experiment) is is_refused


def test_a_power_control_that_cannot_be_used_is_one_finding() -> None:
    """The steps that need it fail for the same reason."""
    why = "the power control of n1: IPMI at bmc rejected the login of ops: the password is wrong"
    both = replace(USE, step_error={"n1": (why, "")}.get)
    other = replace(USE, step_error={"n1": ("step s: no", "")}.get)
    broken = host(power="", power_error=why)
    assert [found[2] for found in messages("power-recovery", observed(broken, experiments=(both,)))] == [why]
    assert messages("steps", observed(broken, experiments=(both,))) == []
    assert len(messages("steps", observed(broken, experiments=(other,)))) == 1


REQUIREMENTS: list[tuple[str, str | None, str]] = [
    (">0", "30s", ""),
    (">= 30s", "30s", ""),
    ("<1m", "30s", ""),
    ("30s", "30s", ""),
    ("!=0s", "1s", ""),
    (">0", "0s", "it is 0s"),
    (">0", None, "but the value on n1 is unknown"),
    (">= 31s", "30s", "it is 30s"),
    ("<30s", "30s", "requires kubelet.shutdownGracePeriod <30s; on n1 it is 30s"),
]


@pytest.mark.parametrize(("text", "value", "why"), REQUIREMENTS)
def test_what_an_experiment_requires(text: str, value: str | None, why: str) -> None:
    experiment = replace(USE, requires={"kubelet": {"shutdownGracePeriod": text}})
    observations = observed(
        host(configz={} if value is None else {"shutdownGracePeriod": value}), experiments=(experiment,)
    )
    (found,) = messages("kubelet-requirements", observations)
    assert found[0] == ("refusal" if why else "ok")
    assert why in found[2]


def test_contract_of_all_checks() -> None:
    """Sentences that go into a table, and facts that exist."""
    from chaos.engine.registry import load_facts, load_windows_facts  # noqa: PLC0415

    known = {*load_facts(), *load_windows_facts(), "configz", PseudoFact.WINRM_QUOTAS}
    for name, check in CHECKS.items():
        assert check.summary[0].islower() or check.summary.startswith("Windows")
        assert not check.summary.endswith(".")
        assert set(check.facts) <= known, name


def test_all_files_of_an_expired_certificate_are_to_be_removed() -> None:
    """Those of kubelets that ran then would be taken for those of the next run."""
    left = host(kubelet_client_certificate={"target": "/x.pem", "mounted": True, "prepared": True})
    (diagnosis,) = diagnoses("leftovers", observed(left))
    assert diagnosis.hint.endswith("rm /run/nodefall-kubelet-client.pem* on the host")
