"""The inventory's limits, checked again right before each injection: nodes may have failed since the plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from chaos.cluster.cluster_state import cluster_view
from chaos.core.action import Target
from chaos.core.cluster_view import ClusterView
from chaos.core.errors import Aborted, NodefallError
from chaos.core.plan import Plan, PlannedStep
from chaos.engine.connection import ClusterConnection
from chaos.engine.inspection import list_objects
from chaos.engine.load import LoadedExperiment
from chaos.engine.observations import BUDGETS, ClusterObservations, ExperimentNeeds, HostObservations, Need
from chaos.engine.planning.targets import check_ready_nodes
from chaos.engine.preflight.collect import CHECKS
from chaos.engine.preflight.findings import Finding, blocking, run_checks

_CHECKS = ("quorum", "budgets")


@dataclass(frozen=True, slots=True)
class InjectionLimits:
    """As when the run was planned, all nodes of its disruptive steps count as down together."""

    loaded: LoadedExperiment
    plan: Plan
    connection: ClusterConnection

    def check(self, group: Sequence[PlannedStep]) -> None:
        """Raises Aborted if the steps would exceed a limit now. Steps that keep pods running, as repairs, may run."""
        if not any(self._is_disruptive(planned) for planned in group):
            return
        nodes = {planned.node for planned in self.plan.steps if self._is_disruptive(planned)}
        try:
            view = cluster_view(self.connection.kube, self.plan.cluster_uid)
            check_ready_nodes(nodes, view, self.connection.inventory.limits)
            blocked = self._blocked(view, nodes)
        except NodefallError as error:
            raise Aborted(f"step {group[0].step} was not done: {error.message}", hint=error.hint) from error
        if blocked:
            message = f"step {group[0].step} was not done: {blocked[0].check}: {blocked[0].message}"
            raise Aborted(message, hint=blocked[0].hint)

    def _is_disruptive(self, planned: PlannedStep) -> bool:
        bound = next(step.bound for step in self.loaded.experiment.spec.method if step.name == planned.step)
        return bool(planned.node) and bound.terminates_pods

    def _blocked(self, view: ClusterView, nodes: set[str]) -> list[Finding]:
        """Refusals of the checks that --anyway did not override."""
        overridden = {text.partition(":")[0] for text in self.plan.overridden}
        lists, list_errors = list_objects(self.connection.kube, (BUDGETS,))
        # The run's own workload is there to be disrupted.
        lists = {path: [o for o in found if _namespace(o) != self.plan.namespace] for path, found in lists.items()}
        present = tuple(sorted(nodes & view.nodes.keys()))  # a step may have deleted a Node
        needs = ExperimentNeeds(self.plan.experiment, frozenset({Need.ENDS_PODS}), present)
        observations = ClusterObservations(
            view=view,
            inventory=self.connection.inventory,
            experiments=(needs,),
            hosts={node: HostObservations(node, Target(node, facts=self.plan.facts.get(node, {}))) for node in present},
            lists=lists,
            list_errors=list_errors,
            hosts_are_targets=True,
        )
        checks = {name: CHECKS[name] for name in _CHECKS if name not in overridden}
        return blocking(run_checks(checks, observations))


def _namespace(item: dict[str, Any]) -> str:
    return str(item["metadata"].get("namespace", ""))
