"""Checks right before an operation: the node's machine is still the planned one, and the inventory's limits hold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from chaos.cluster.cluster_state import ApiFacts, cluster_view
from chaos.core.action import FactCheck, Target, Undo
from chaos.core.api_fact import PseudoFact
from chaos.core.cluster_view import ClusterView
from chaos.core.command import Command, HostCommand, PowerCommand
from chaos.core.errors import Aborted, AnotherMachine, NodefallError
from chaos.core.plan import Plan, PlannedStep
from chaos.engine.connection import ClusterConnection
from chaos.engine.inspection import list_objects
from chaos.engine.load import LoadedExperiment
from chaos.engine.observations import BUDGETS, ClusterObservations, ExperimentNeeds, HostObservations, Need
from chaos.engine.planning.targets import check_ready_nodes
from chaos.engine.preflight.collect import CHECKS
from chaos.engine.preflight.findings import Finding, blocking, run_checks
from chaos.machines.pool import Hosts

_POWER_FACTS = (PseudoFact.MACHINE, PseudoFact.RESTART_POLICY)


class IdentityGuard:
    """Evaluates the identity checks of one journal entry, each group at most once until :meth:`reset`.

    A group without checks always holds: journals of 0.1.0 have none.
    """

    def __init__(self, hosts: Hosts, node: str, checks: Iterable[FactCheck]) -> None:
        self._hosts, self._node = hosts, node
        checks = tuple(checks)
        self._power_checks = tuple(check for check in checks if check.fact == PseudoFact.POWER_IDENTITY)
        self._host_checks = tuple(check for check in checks if check.fact != PseudoFact.POWER_IDENTITY)
        self._unmet: dict[tuple[FactCheck, ...], str] = {}
        self._difference = ""
        for check in self._host_checks:
            if check.fact == PseudoFact.HOST_KEY:  # not even to be asked whether something is due
                hosts.expect_host_key(node, check.value)

    def reset(self) -> None:
        """Evaluate the checks again when they are next needed."""
        self._unmet.clear()
        self._difference = ""

    @property
    def is_evaluated(self) -> bool:
        """Whether any group has been evaluated since :meth:`reset`."""
        return bool(self._unmet)

    @property
    def difference(self) -> str:
        """The difference to the expected machine that an evaluation since :meth:`reset` has shown; "" if it does not
        respond.
        """
        return self._difference

    def unmet_for_command(self, command: Command) -> str:
        """Why ``command`` must not be sent; "" if it may be."""
        if isinstance(command, HostCommand):
            return self._evaluate(self._host_checks)
        return self._evaluate(self._power_checks) if isinstance(command, PowerCommand) else ""

    def unmet_for_proof(self, undo: Undo) -> str:
        """Why the proof of ``undo`` does not count: its facts may be another machine's. "" if the proof counts."""
        facts = {check.fact for check in undo.proof}
        uses_host = undo.disarm or any(fact not in _POWER_FACTS and not ApiFacts.supports(fact) for fact in facts)
        return (self._evaluate(self._host_checks) if uses_host else "") or (
            self._evaluate(self._power_checks) if facts & set(_POWER_FACTS) else ""
        )

    def _evaluate(self, checks: tuple[FactCheck, ...]) -> str:
        if checks not in self._unmet:
            self._unmet[checks] = self._first_unmet(checks)
        return self._unmet[checks]

    def _first_unmet(self, checks: tuple[FactCheck, ...]) -> str:
        for check in checks:
            try:
                value = self._hosts.read(self._node, check.fact)
            except NodefallError as error:
                hint = f" ({error.hint})" if error.hint else ""
                unmet = f"cannot verify the identity of {self._node}: {error.message}{hint}"
                if isinstance(error, AnotherMachine):
                    self._difference = self._difference or unmet
                return unmet
            if value != check.value:
                unmet = f"{self._node} is another machine now: expected {check}, but {check.fact} is {value}"
                self._difference = self._difference or unmet
                return unmet
        return ""


_CHECKS = ("quorum", "budgets")


@dataclass(frozen=True, slots=True)
class InjectionLimits:
    """Checks the inventory's limits as planning does: all nodes of disruptive steps count as down at the same time."""

    loaded: LoadedExperiment
    plan: Plan
    connection: ClusterConnection

    def check(self, group: Sequence[PlannedStep]) -> None:
        """Raises Aborted if the steps would exceed a limit now. Steps that keep pods running are exempt."""
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
        """Check refusals that --anyway did not override."""
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
