"""Assertion ``budget-respected``: voluntary disruptions leave each budget enough healthy pods."""

from __future__ import annotations

from functools import partial
from typing import Literal

from pydantic import Field

from chaos.core.assertion import Claim, Names, NothingToJudge, View
from chaos.core.field_types import Model
from chaos.core.kube import PodDisruptionBudget
from chaos.core.recording import BlindWindow
from chaos.core.signal import Signal, Subject, SubjectSet
from chaos.core.timeline import History, Key
from chaos.verdicts.judge.budgets import BudgetLedger, NewVersions
from chaos.verdicts.judge.membership import Present, at, require_complete
from chaos.verdicts.judge.signals import mask_blind, mask_late, mask_unproven, mask_unseen_pods

_SOURCES = ("poddisruptionbudgets", "pods")
Late = list[list[BlindWindow]]  # of each source


class Params(Model):
    """Budgets, and the disruptions that must respect them."""

    namespace: str = Field(description="A namespace, or workload.")
    name: str | None = Field(
        None, description="The name of the PodDisruptionBudget. By default, all budgets of the namespace."
    )
    by: list[Literal["eviction", "deletion", "preemption"]] = Field(
        ["eviction", "deletion"],
        min_length=1,
        description="Whose disruptions count. deletion: by anything but the eviction API, a taint, the "
        "kubelet or pod GC.",
    )


def _signal(view: View, ledger: BudgetLedger, budget: History[PodDisruptionBudget], late: Late) -> Signal:
    """Signal of whether the budget is respected, unknown where changes came late or may be lost."""
    timeline = view.timeline

    def make() -> Signal:
        signal = mask_late(ledger.signal(), timeline, *_SOURCES)
        return mask_blind(mask_unseen_pods(signal, timeline), timeline, "poddisruptionbudgets")

    return view.memo().recall(timeline, budget, make, ledger.revision, late)


class BudgetRespected:
    """No voluntary disruption leaves a budget fewer healthy pods than its status.desiredHealthy.

    Healthy means Ready and not being deleted (facts 8.2). Each loss of a healthy pod is attributed to a cause. Losses
    because of taints, the kubelet, pod GC or a failing pod are involuntary: they use up the budget, but the budget
    cannot prevent them. If a voluntary disruption leaves too few pods, the budget is violated until enough pods are
    healthy again.
    """

    name = "budget-respected"
    summary = "voluntary disruptions never leave a PodDisruptionBudget too few healthy pods"
    example = "{assert: budget-respected, with: {namespace: workload, by: [eviction]}, after: drain, always: {for: 2m}}"
    needs = "the PodDisruptionBudget with its status and its pods, watched without a gap"
    params = Params
    node_fields = ()
    moment_fields = ()
    masks_itself = True
    sources = ("pods", "poddisruptionbudgets")

    def claim(self, params: Params, names: Names) -> Claim:
        *others, last = [f"{cause}s" for cause in params.by]
        by = f"{', '.join(others)} or {last}" if others else last
        name = params.name or names.one_affected()
        all_of = "the workload's budgets" if params.namespace == "workload" else f"budgets of {params.namespace}"
        budget = f"budget {name}" if name else all_of
        return Claim(f"{by} left {budget} enough healthy pods", f"{by} left {budget} too few healthy pods")

    def subjects(self, params: Params, view: View) -> SubjectSet:
        namespace, timeline = view.namespace(params.namespace), view.timeline
        require_complete(view, "poddisruptionbudgets", view.anchor)
        groups = timeline.pods.label_groups(namespace)
        versions = view.memo("versions").keep(NewVersions).take(timeline, namespace)
        late = [timeline.currency.late_windows(source) for source in _SOURCES]
        windows, budgets = timeline.uncertain_windows("pods"), timeline.poddisruptionbudgets

        def includes(key: Key) -> bool:
            return key[0] == namespace and params.name in (None, key[1])

        present = view.memo(namespace).keep(lambda: Present[Key](at(view.anchor), lambda _: _SOURCES[0], includes))
        subjects = []
        for key in present.keys(budgets):
            ledger = view.memo("ledger", key).keep(partial(BudgetLedger, params.by, view.anchor))
            ledger.update(timeline, budgets[key], groups, versions, windows)
            signal = mask_unproven(_signal(view, ledger, budgets[key], late), timeline, *_SOURCES)
            subjects.append(Subject("/".join(key), signal))
        if not subjects:
            name = f" {params.name}" if params.name else ""
            raise NothingToJudge(f"no PodDisruptionBudget{name} was observed in {namespace} at the beginning")
        return SubjectSet(f"no {' or '.join(params.by)} leaves a budget too few healthy pods", tuple(subjects))


ASSERTION = BudgetRespected()
