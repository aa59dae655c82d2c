"""States of the live view, as runs of different kinds and sizes leave them."""

from __future__ import annotations

from collections.abc import Sequence

from chaos.cli.run.lines import ProgressState
from chaos.cli.run.view.state import ViewState
from chaos.core.kube import Metadata, Node, Workload, WorkloadSpec, WorkloadStatus
from chaos.core.recording import ActionRecord
from chaos.core.result import Judgement
from chaos.core.timeline import Entry, Timeline
from chaos.core.verdict import Status, Verdict
from tests.kit.small_timelines import node, pod

START = 1_790_000_000.0
NAMESPACE = "nodefall-graceful-poweroff-426d25"
META = {"experiment": "graceful-poweroff", "simulated": True, "workload": NAMESPACE, "targets": {"worker-1": "victim"}}
UNREACHABLE = "node.kubernetes.io/unreachable"


class Scene:
    """A run as its view sees it: entries of the timeline, lines, verdicts."""

    def __init__(self, **meta: object) -> None:
        self.timeline = Timeline(meta={**META, **meta})
        self.state = ViewState(progress=ProgressState(), has_keys=True)
        self.verdicts: tuple[tuple[Verdict, ...], tuple[Verdict, ...]] = ((), ())
        self.at(0.0)

    @property
    def progress(self) -> ProgressState:
        return self.state.progress

    def at(self, t: float) -> None:
        """Go on to a time, in seconds since the start."""
        self.state.add(self.progress.tick(START + t))

    def phase(self, name: str) -> None:
        self.state.add(self.progress.phase(name))

    def step(self, name: str, *nodes: str, what: str) -> None:
        for each in nodes:
            self.state.add(self.progress.step(name, each, what))

    def note(self, text: str) -> None:
        self.state.add(self.progress.note(text))

    def see(self, kind: str, *things: object, type_: str = "MODIFIED", on: str = "") -> None:
        now = self.progress.now or START
        for thing in things:
            self.timeline.add(Entry(len(self.timeline.entries), now, kind, type_, thing, node=on))

    def fire(self) -> None:
        self.see("action", ActionRecord(step="power-off", phase="begin"), type_="poweroff", on="worker-1")

    def judge(self, expectations: Sequence[Verdict], recovery: Sequence[Verdict] = ()) -> None:
        judgement = Judgement(tuple(expectations), tuple(recovery), self.timeline, START + 600.0)
        self.state.cluster.update(self.timeline)
        for verdict in (*expectations, *recovery):
            self.state.add(self.progress.verdict(verdict))
        self.state.add(self.progress.judged(judgement))


def named(status: str, name: str, *taints: str, cordoned: bool = False) -> Node:
    found = node(status, *taints, name=name)
    assert found.spec is not None
    found.spec.unschedulable = cordoned or None
    return found


def deployment(name: str, ready: int, desired: int, namespace: str = NAMESPACE) -> Workload:
    return Workload(Metadata(name, namespace, name), WorkloadSpec(desired), WorkloadStatus(ready_replicas=ready))


def daemonset(name: str, ready: int, desired: int, namespace: str) -> Workload:
    status = WorkloadStatus(number_ready=ready, desired_number_scheduled=desired)
    return Workload(Metadata(name, namespace, name), None, status)


def pending(name: str, observed: str, due: float | None) -> Verdict:
    deadline = None if due is None else START + due
    return Verdict(name, "a", Status.PENDING, "the recording ends", "e", observed, deadline=deadline)


def decided(name: str, status: Status, because: str, observed: str = "") -> Verdict:
    return Verdict(name, "a", status, because, "e", observed or because)


def steady() -> ViewState:
    """Before the first step: the workload is not available yet."""
    scene = Scene()
    scene.phase("arm")
    scene.note(f"applying the workload in namespace {NAMESPACE}")
    scene.phase("steady state")
    scene.see("nodes", *(named("True", f"worker-{number}") for number in (1, 2, 3)))
    scene.see("deployments", deployment("web", 1, 3))
    scene.see("pods", pod("Running", on="worker-1", uid="p1"), pod("Pending", on=None, uid="p2"))
    scene.see("host", "on", type_="machine", on="worker-1")
    scene.see("host", ["kubelet", "NetworkManager"], type_="inhibitor-holders", on="worker-1")
    scene.at(4.0)
    scene.judge(
        [
            decided("nodes-ready", Status.HELD, "3 of 3, for example worker-1: Ready is True"),
            pending("workload-available", "deployment web: 1 of 3 pods are available", None),
        ]
    )
    return scene.state


def burning() -> ViewState:
    """A node is off; its pods are being replaced."""
    scene = Scene()
    scene.phase("arm")
    scene.see("nodes", *(named("True", f"worker-{number}") for number in (1, 2, 3)))
    scene.see("deployments", deployment("web", 3, 3), deployment("coredns", 2, 2, "kube-system"))
    scene.see("daemonsets", daemonset("kube-proxy", 3, 3, "kube-system"))
    scene.see("replicasets", deployment("alone", 1, 1))
    scene.see("pods", *(pod("Running", on="worker-1", uid=f"p{number}") for number in range(4)))
    scene.see("host", "on", type_="machine", on="worker-1")
    scene.see("host", True, type_="inhibitor-kubelet", on="worker-1")
    scene.phase("inject")
    scene.at(30.0)
    scene.step("power-off", "worker-1", what="systemctl poweroff")
    scene.fire()
    scene.at(36.0)
    scene.see("deployments", deployment("web", 1, 3), deployment("coredns", 1, 2, "kube-system"))
    scene.see("host", False, type_="inhibitor-kubelet", on="worker-1")
    scene.see("host", "off", type_="machine", on="worker-1")
    scene.see("pods", pod("Succeeded", on="worker-1", uid="p0"), pod("Running", on="worker-2", uid="p9"))
    scene.see("pods", pod("Running", on="worker-1", uid="p1"), type_="DELETED")
    scene.phase("observe")
    scene.at(72.0)
    scene.see("nodes", named("Unknown", "worker-1", UNREACHABLE, "node.kubernetes.io/unschedulable", cordoned=True))
    scene.see("nodes", named("True", "worker-3", "example.com/drained"))
    scene.see("deployments", deployment("web", 2, 3))
    scene.see("daemonsets", daemonset("kube-proxy", 2, 2, "kube-system"))
    scene.step("power-off", "worker-1", what="proven: worker-1 was off 9.9 s after the step")
    scene.at(73.5)
    scene.judge(
        [
            decided("the kubelet announces the shutdown", Status.HELD, "worker-1: Ready is False, at power-off"),
            pending("every pod is replaced", "deployment web: 2 of 3 pods are available", 120.0),
            pending(
                "no pod starts on the node that shuts down",
                "never observed (11 of 11, for example db-1: no container started)",
                210.0,
            ),
        ],
        [pending("recovery: nodes-ready", "a step has not happened", None)],
    )
    return scene.state


def violated() -> ViewState:
    """The recovery is waited for; a Node is gone, others interfered, and scrolling is paused."""
    scene = Scene(simulated=False, targets={"worker-1": "victim", "worker-2": "victim"})
    scene.see("nodes", *(named("True", f"worker-{number}") for number in (1, 2, 3)))
    scene.at(10.0)
    scene.step("stop", "worker-1", "worker-2", what="systemctl stop kubelet")
    scene.fire()
    scene.at(50.0)
    scene.see("nodes", named("False", "worker-1"), named("Unknown", "worker-2", UNREACHABLE))
    scene.see("nodes", named("True", "worker-3"), type_="DELETED")
    scene.phase("recovery")
    scene.note("foreign fault: worker-3 was deleted by kubectl (field manager)")
    scene.at(191.0)
    scene.judge(
        [
            decided(
                "evicted within 2 minutes",
                Status.VIOLATED,
                "default/web-7d4b9c-x2x9k: not evicted 120.0 s after stop",
                "default/web-7d4b9c-x2x9k: still Running on worker-2",
            ),
            decided("nodes stay", Status.INCONCLUSIVE, "worker-3 was deleted by kubectl"),
            decided("the API answers", Status.HELD, "never observed"),
        ],
        [pending("recovery: nodes-ready", "worker-2: Ready is Unknown (NodeStatusUnknown)", 310.0)],
    )
    scene.state.toggle_pause()
    scene.note("undo of stop on worker-2 waits: kubelet-state is inactive")
    scene.state.opens_report = True
    return scene.state


def crowded() -> ViewState:
    """Fifty targets, and more of everything than fits."""
    names = [f"pool-a-{number:03}" for number in range(50)]
    scene = Scene(targets=dict.fromkeys(names, "victims"))
    scene.see("nodes", *(named("True", name) for name in names))
    scene.at(5.0)
    scene.step("stop", *names, what="systemctl stop kubelet")
    scene.fire()
    scene.at(45.0)
    scene.see("nodes", *(named("Unknown", name, UNREACHABLE) for name in names[:30]))
    scene.see("deployments", *(deployment(f"app-{number}", number % 4, 3, f"team-{number}") for number in range(40)))
    scene.phase("observe")
    scene.at(46.0)
    statuses = [decided(f"expectation {number}", Status.HELD, "yes") for number in range(12)]
    waiting = [pending(f"deadline {number}", f"{number} of 50 have ended", 60.0 + number) for number in range(18)]
    scene.judge([*statuses, *waiting])
    scene.state.is_stopping = True
    scene.state.silent = 12.3
    return scene.state


SCENES = {"steady": steady, "burning": burning, "violated": violated, "crowded": crowded}
SIZES = {60: 20, 80: 24, 120: 32, 200: 50}  # lines of a terminal of so many columns
