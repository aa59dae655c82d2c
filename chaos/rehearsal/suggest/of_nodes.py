"""Weaknesses of nodes: how they shut down, which DaemonSets they lack, and programs that would interfere."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from chaos.cluster.snapshot.document import Object
from chaos.core.duration import parse_duration
from chaos.core.text import count_of
from chaos.engine.preflight.checks.remediators import PROGRAMS
from chaos.lab.facade import matches_node, untolerated
from chaos.rehearsal.suggest.model import CLOSING, CRITICAL, Model, Workload
from chaos.rehearsal.suggest.weakness import CLUSTER, Weakness, WeaknessKind

_NAMED = 8
_OWN_TAINTS = "node.kubernetes.io/"  # which DaemonSets tolerate by themselves


def shutdowns(model: Model) -> Iterator[Weakness]:
    """Workers that end their pods without a grace period, and those whose grace period is too short for pods."""
    off = [name for name in model.workers if (config := model.contents.configs.get(name)) and not is_graceful(config)]
    if off:
        yield Weakness(
            WeaknessKind.SHUTDOWN_OFF,
            CLUSTER,
            tuple(f"Node {name}" for name in off),
            {"nodes": len(off), "workers": len(model.workers)},
            f"The kubelets of {len(off)} of {count_of(len(model.workers), 'worker')} ({_some(off)}) have no graceful "
            "shutdown: a power-off or reboot ends pods without their grace period, and they stay in Services.",
            "set shutdownGracePeriod and shutdownGracePeriodCriticalPods of the kubelets",
            "shutdownGracePeriod=60s",
        )
    for is_critical in (False, True):
        if short := list(_cut(model, is_critical)):
            yield _too_short(short, is_critical)


def is_graceful(config: Object) -> bool:
    """Whether a kubelet with this configuration ends pods in order when its machine shuts down."""
    return bool(config.get("shutdownGracePeriodByPodPriority")) or _duration(config, "shutdownGracePeriod") > 0


def _duration(config: Object, key: str) -> float:
    return parse_duration(str(config.get(key) or "0s"))


def seconds_to_end(config: Object, priority: int) -> float:
    """How long a shutdown of a node waits for pods of a priority."""
    if buckets := config.get("shutdownGracePeriodByPodPriority"):
        fitting = [each for each in buckets if each["priority"] <= priority]
        return float(max(fitting, key=lambda each: each["priority"])["shutdownGracePeriodSeconds"]) if fitting else 0.0
    critical = _duration(config, "shutdownGracePeriodCriticalPods")
    return critical if priority >= CRITICAL else _duration(config, "shutdownGracePeriod") - critical


def _cut(model: Model, is_critical: bool) -> Iterator[tuple[Workload, float]]:
    """Workloads with the least time that one of their nodes gives them, if that is less than they ask for."""
    for each in model.workloads:
        configs = [config for node in each.on_nodes if (config := model.contents.configs.get(node))]
        given = [seconds_to_end(config, each.priority) for config in configs if is_graceful(config)]
        if (each.priority >= CRITICAL) == is_critical and given and min(given) < each.grace:
            yield each, min(given)


def _too_short(short: list[tuple[Workload, float]], is_critical: bool) -> Weakness:
    short = sorted(short, key=lambda item: item[1] - item[0].grace)
    (worst, given), names = short[0], [each.key for each, _ in short]
    key = "shutdownGracePeriodCriticalPods" if is_critical else "shutdownGracePeriod"
    return Weakness(
        WeaknessKind.CRITICAL_SECONDS if is_critical else WeaknessKind.GRACE_CUT,
        worst.key,
        tuple(names),
        {"workloads": len(short), "grace": worst.grace, "given": int(given)},
        f"{worst.key} has {worst.grace} s to end, and the shutdown of its node gives it {given:g} s"
        + (f" (the same for {count_of(len(short) - 1, 'other workload')}: {_some(names[1:])})." if short[1:] else "."),
        f"raise {key} of the kubelets, or lower terminationGracePeriodSeconds",
        f"grace={worst.name}:{int(given)}" if worst.kind != "Pod" and given else "",
    )


def daemons(model: Model) -> Iterator[Weakness]:
    """DaemonSets that workers lack because of taints that people have set."""
    for each in model.daemons:
        pod = {"metadata": {}, "spec": each.pod_spec}
        missing = [name for name in model.workers if _lacks(pod, model.nodes[name])]
        if missing:
            yield Weakness(
                WeaknessKind.DAEMON_MISSING,
                each.key,
                (each.key, *(f"Node {name}" for name in missing)),
                {"nodes": len(missing), "workers": len(model.workers)},
                f"{each.key} does not tolerate the taints of {len(missing)} of "
                f"{count_of(len(model.workers), 'worker')} ({_some(missing)}): it is missing there.",
                "add tolerations to its pods, unless these nodes are to be without it",
            )


def _lacks(pod: Object, node: Object) -> bool:
    taints = [each for each in (node.get("spec") or {}).get("taints") or () if not each["key"].startswith(_OWN_TAINTS)]
    return matches_node(pod, node) and bool(untolerated(pod, taints, CLOSING))


def interfering(model: Model) -> Iterator[Weakness]:
    """Programs that remove, reboot or drain nodes, or evict pods, by themselves: a run and they would mix."""
    found: Mapping[str, list[str]] = defaultdict(list)
    for each in (*model.workloads, *model.daemons):
        images = [str(item.get("image", "")) for item in each.pod_spec.get("containers") or ()]
        for key in PROGRAMS:
            if any(key in image for image in images):
                found[key].append(each.key)
    for key, objects in found.items():
        program, effect = PROGRAMS[key]
        yield Weakness(
            WeaknessKind.INTERFERES,
            objects[0],
            tuple(objects),
            {"objects": len(objects)},
            f"{program} ({objects[0]}) {effect}. No rehearsal knows it: the cluster may do something else.",
            f"stop {program} during a run, or exclude the targets from it",
        )


def _some(names: list[str]) -> str:
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
