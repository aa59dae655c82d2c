"""Weaknesses of disruption budgets and autoscalers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from chaos.cluster.snapshot.document import Object, name_of
from chaos.core.text import count_of
from chaos.rehearsal.suggest.model import Model, Workload
from chaos.rehearsal.suggest.weakness import Weakness, WeaknessKind


def budgets(model: Model) -> Iterator[Weakness]:
    """Budgets that block every drain, that protect nothing, and that share pods."""
    for budget, pods in model.budgets:
        name, status = f"PodDisruptionBudget {name_of(budget)}", budget.get("status") or {}
        if not pods:
            yield _idle(name, 0, "it selects no pod")
        elif _blocks(status):
            yield _blocking(name, budget, pods, model)
        elif not status.get("desiredHealthy") and status.get("expectedPods"):
            yield _idle(name, len(pods), f"it allows all {len(pods)} of its pods to be evicted at once")
    yield from _shared(model)


def _blocks(status: Object) -> bool:
    """Whether no disruption is allowed although every expected pod is healthy: that will not change by itself."""
    expected = int(status.get("expectedPods") or 0)
    is_healthy = int(status.get("currentHealthy") or 0) >= expected > 0
    return is_healthy and status.get("disruptionsAllowed") == 0


def _blocking(name: str, budget: Object, pods: list[Object], model: Model) -> Weakness:
    status = budget["status"]
    desired, expected = int(status.get("desiredHealthy") or 0), int(status["expectedPods"])
    owners = dict.fromkeys(each.key for pod in pods if (each := model.workload_of.get(id(pod))))
    return Weakness(
        WeaknessKind.BUDGET_BLOCKS,
        next(iter(owners), name),
        (name, *owners),
        {"pods": expected, "demanded": desired},
        f"{name} demands {desired} healthy pods of {expected}: no pod may be evicted, so a drain of their nodes "
        "never completes.",
        "let it allow one disruption (maxUnavailable: 1), or add a replica",
        next((f"replicas={each.name}:{each.replicas + 1}" for each in _scalable(pods, model)), ""),
    )


def _scalable(pods: list[Object], model: Model) -> Iterator[Workload]:
    found = (model.workload_of.get(id(pod)) for pod in pods)
    return (each for each in found if each and each.kind != "Pod")


def _idle(name: str, pods: int, why: str) -> Weakness:
    return Weakness(
        WeaknessKind.BUDGET_IDLE,
        name,
        (name,),
        {"pods": pods},
        f"{name} protects nothing: {why}.",
        "correct its selector or its minAvailable, or delete it",
    )


def _shared(model: Model) -> Iterator[Weakness]:
    groups: dict[tuple[str, ...], list[Object]] = defaultdict(list)
    for pod in model.pods:
        if len(shared := model.budgets_of.get(id(pod), [])) > 1:
            groups[tuple(shared)].append(pod)
    for names, pods in groups.items():
        yield Weakness(
            WeaknessKind.BUDGET_OVERLAP,
            f"PodDisruptionBudget {names[0]}",
            tuple(f"PodDisruptionBudget {name}" for name in names),
            {"pods": len(pods), "budgets": len(names)},
            f"{count_of(len(pods), 'pod')} have {len(names)} budgets ({', '.join(names)}): the API server refuses to "
            "evict a pod that has more than one.",
            "let one budget select them",
        )


def missing_budgets(model: Model) -> Iterator[Weakness]:
    """Workloads of several replicas that no budget protects from a drain of several nodes."""
    for each in model.workloads:
        if each.replicas > 1 and each.pods and not any(model.budgets_of.get(id(pod)) for pod in each.pods):
            yield Weakness(
                WeaknessKind.NO_BUDGET,
                each.key,
                (each.key,),
                {"replicas": each.replicas},
                f"No budget protects the {each.replicas} pods of {each.key}: drains may evict all of them at once.",
                "give it a PodDisruptionBudget with maxUnavailable: 1",
            )


def autoscalers(model: Model) -> Iterator[Weakness]:
    """Autoscalers that may go down to one replica, cannot scale, or have reached their maximum."""
    workloads = {each.key: each for each in model.workloads}
    for scaler in model.contents.of("horizontalpodautoscalers"):
        spec, name = scaler.get("spec") or {}, name_of(scaler)
        target, namespace = spec.get("scaleTargetRef") or {}, name.rpartition("/")[0]
        workload = workloads.get(f"{target.get('kind')} {namespace}/{target.get('name')}")
        if workload is not None:
            yield from _of_autoscaler(f"HorizontalPodAutoscaler {name}", scaler, workload, model)


def _of_autoscaler(name: str, scaler: Object, workload: Workload, model: Model) -> Iterator[Weakness]:
    spec, status = scaler["spec"], scaler.get("status") or {}
    least, most = int(spec.get("minReplicas") or 1), int(spec.get("maxReplicas") or 1)
    current = int(status.get("currentReplicas") or 0)
    numbers, objects = {"minimum": least, "maximum": most, "replicas": current}, (name, workload.key)
    if least == most:
        text = f"{name} has the minimum {least} and the maximum {most}: {workload.key} is never scaled."
        yield Weakness(
            WeaknessKind.AUTOSCALER_FIXED, workload.key, objects, numbers, text, "raise maxReplicas, or delete it"
        )
    elif current >= most:
        text = f"{name} has reached its maximum of {most}: pods that are lost leave the others with more load."
        yield Weakness(WeaknessKind.AUTOSCALER_FULL, workload.key, objects, numbers, text, "raise maxReplicas")
    if least == 1 and workload.replicas > 1:
        text = f"{name} may scale {workload.key} down to one replica."
        yield Weakness(WeaknessKind.AUTOSCALER_ONE, workload.key, objects, numbers, text, "set minReplicas to 2")
    for budget, pods in model.budgets:
        demanded = (budget.get("spec") or {}).get("minAvailable")
        if isinstance(demanded, int) and demanded >= least and set(map(id, pods)) & set(map(id, workload.pods)):
            text = f"PodDisruptionBudget {name_of(budget)} demands {demanded} pods, and {name} may leave only {least}."
            yield Weakness(
                WeaknessKind.BUDGET_ABOVE_AUTOSCALER,
                workload.key,
                (*objects, f"PodDisruptionBudget {name_of(budget)}"),
                {**numbers, "demanded": demanded},
                f"{text} At that size, no pod may be evicted, and drains do not complete.",
                "use maxUnavailable in the budget, or a greater minReplicas",
            )
