"""Whether a node's host and power control are still the machine for which an undo was planned."""

from __future__ import annotations

from collections.abc import Iterable

from chaos.cluster.cluster_state import ApiFacts
from chaos.core.action import FactCheck, Undo
from chaos.core.api_fact import PseudoFact
from chaos.core.command import Command, HostCommand, PowerCommand
from chaos.core.errors import AnotherMachine, NodefallError
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
        """Whether any group was evaluated since :meth:`reset`."""
        return bool(self._unmet)

    @property
    def difference(self) -> str:
        """What an evaluation since :meth:`reset` has shown of another machine; "" for one that does not respond."""
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
