"""The machines behind the nodes: sessions, power controls, and what is known of them right now."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any

from chaos.kube.api_facts import ApiFacts, UnknownFact
from chaos.kube.commands import KubeTransport
from chaos.model.action import FactCheck
from chaos.model.api_fact import PseudoFact
from chaos.model.command import ApiCommand, Command, Delivery, HostCommand, Outcome, PowerCommand, PowerVerb
from chaos.model.errors import NodefallError, Refused, Unreachable
from chaos.model.fact import HostFact, find_fact
from chaos.model.ports import Clock, KubeApi, PowerControl, RestartPolicyControl, Session

_NO_INPUTS: Mapping[str, Any] = {}


class Hosts:
    """Thread safe. ``open_session`` and ``open_power`` are called once per node, when first needed."""

    def __init__(
        self,
        open_session: Callable[[str], Session],
        open_power: Callable[[str], PowerControl | None],
        kube: KubeApi,
        facts: Mapping[str, HostFact],
        clock: Clock,
    ) -> None:
        self._open_session, self._open_power, self._facts = open_session, open_power, facts
        self._kube, self._api = KubeTransport(kube, clock), ApiFacts(kube)
        self._sessions: dict[str, Session] = {}
        self._powers: dict[str, PowerControl | None] = {}
        self._fact_cache: dict[tuple[str, str], Any] = {}
        self._node_locks: dict[str, Lock] = {}
        self._lock = Lock()

    def session(self, node: str) -> Session:
        """The node's session. Raises NodefallError when the host cannot be reached or trusted."""
        with self._node_lock(node):
            if node not in self._sessions:
                self._sessions[node] = self._open_session(node)
            return self._sessions[node]

    def power(self, node: str) -> PowerControl | None:
        """The node's power control, None if it has none."""
        with self._node_lock(node):
            if node not in self._powers:
                self._powers[node] = self._open_power(node)
            return self._powers[node]

    def read(self, node: str, fact: str, given: Mapping[str, Any] = _NO_INPUTS) -> Any:
        """The value of a fact right now; ``given``: what it needs and only the reader knows. Raises UnknownFact."""
        if fact == PseudoFact.MACHINE:
            return self._power_state(node)
        if fact == PseudoFact.RESTART_POLICY:
            return self.restart_policy(node)
        if fact == PseudoFact.BOOT_POSTED:
            return self._api.boot_id(node) == self.read(node, "boot-id")
        if self._api.supports(fact):
            return self._api.read(node, fact)
        try:
            host_fact = find_fact(self._facts, fact)
            command = host_fact.command_for(
                {name: given[name] if name in given else self._cached_fact(node, name) for name in host_fact.needs}
            )
        except ValueError as error:
            raise UnknownFact(f"{fact} of {node}: {error}") from error
        outcome = self.send(node, command)
        if outcome.delivery != Delivery.ANSWERED:
            raise UnknownFact(f"{fact} of {node}: {outcome.error or 'the line was lost'}")
        try:
            return host_fact.parse(outcome.stdout, outcome.exit or 0)
        except ValueError as error:
            detail = outcome.stderr.strip().splitlines()[-1:] or [""]
            raise UnknownFact(f"{fact} of {node}: {error} {detail[0]}".rstrip()) from error

    def _cached_fact(self, node: str, fact: str) -> Any:
        """A fact that others are made of, as it was when it was first read."""
        if (node, fact) not in self._fact_cache:
            self._fact_cache[node, fact] = self.read(node, fact)
        return self._fact_cache[node, fact]

    def invalidate(self, node: str) -> None:
        """Forget what other facts are made of: after a fault units and connections may be others than at its begin."""
        for key in [key for key in list(self._fact_cache) if key[0] == node]:
            self._fact_cache.pop(key, None)

    def check(self, node: str, check: FactCheck) -> tuple[bool, str]:
        """Whether a check holds now, and what was seen. Not knowing is not holding."""
        try:
            value = self.read(node, check.fact)
        except NodefallError as error:
            return False, f"{error.message} ({error.hint})" if error.hint else error.message
        return value == check.value, f"{check.fact} is {json.dumps(value)}"

    def send(self, node: str, command: Command) -> Outcome:
        """Send one command wherever it goes. Raises NodefallError only where nothing was sent."""
        if isinstance(command, HostCommand):
            outcome = self.session(node).run(command)
            if outcome.delivery == Delivery.NOT_SENT:
                self.disconnect(node)
            return outcome
        if isinstance(command, ApiCommand):
            return self._kube.send(command)
        power = self.power(node)
        if power is None:
            raise Refused(f"{node} has no power control", hint="give its host one in the inventory")
        try:
            _run_power_command(power, command)
        except Unreachable as error:
            return Outcome(Delivery.NOT_SENT, error=error.message)
        except NodefallError as error:  # it may have been done all the same: the state read later tells
            return Outcome(Delivery.LOST, error=error.message)
        return Outcome(Delivery.ANSWERED, 0)

    def restart_policy(self, node: str) -> str:
        """By which the machine comes on by itself; "" where nothing of the kind is known."""
        power = self.power(node)
        return power.restart_policy() if isinstance(power, RestartPolicyControl) else ""

    def disconnect(self, node: str) -> None:
        """Close its session: what runs there goes on unwatched. The host is looked up anew next time, as its address
        may have changed with a restart.
        """
        session = self._sessions.pop(node, None)
        if session:
            session.close()

    def close(self) -> None:
        """Close every session."""
        for node in list(self._sessions):
            self.disconnect(node)

    def _node_lock(self, node: str) -> Lock:
        """A lock per node: one that does not answer keeps nobody waiting for another."""
        with self._lock:
            return self._node_locks.setdefault(node, Lock())

    def _power_state(self, node: str) -> str:
        power = self.power(node)
        if power is None:
            raise UnknownFact(f"machine of {node}: it has no power control")
        return power.state()


def _run_power_command(power: PowerControl, command: PowerCommand) -> None:
    if command.verb is PowerVerb.ON:
        power.on()
    elif command.verb is PowerVerb.OFF:
        power.off()
    elif isinstance(power, RestartPolicyControl):
        power.set_restart_policy(command.value)
    else:
        raise Refused(f"the power control cannot do {command}", hint="it is not the one that was planned with")
