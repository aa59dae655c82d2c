"""The host pool: sessions, power controls and current facts of the machines behind the nodes."""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from threading import Lock
from typing import Any

from chaos.cluster.cluster_state import ApiFacts, UnknownFact
from chaos.cluster.commands import KubeTransport
from chaos.core.action import FactCheck
from chaos.core.api_fact import PseudoFact, fact_text
from chaos.core.command import ApiCommand, Command, Delivery, HostCommand, Outcome, PowerCommand, PowerVerb
from chaos.core.errors import NodefallError, Refused, Unreachable
from chaos.core.fact import FactRef, HostFact, find_fact
from chaos.core.permission import Permission
from chaos.core.ports import (
    Clock,
    KubeApi,
    MachineAddresses,
    MachineIdentity,
    MachineRisks,
    PowerControl,
    RelayedSession,
    RestartPolicyControl,
    ServiceSession,
    Session,
    StopProgress,
)
from chaos.core.power_identity import PowerIdentity, PowerRisk, plain_address
from chaos.machines.driver import run_power_command
from chaos.machines.sessions.host_keys import HostKeyPins

_log = logging.getLogger(__name__)
_NO_INPUTS: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True)
class WindowsFacts:
    """Which nodes have a host with Windows, the facts of such hosts, and what crashes the host of a node, or ""."""

    is_windows: Callable[[str], bool]
    load_facts: Callable[[], Mapping[str, HostFact]]
    crash_tool: Callable[[str], str] = lambda _: ""


class Hosts:
    """The hosts of a run. Thread-safe. ``open_session`` and ``open_power`` are called once per node, when first needed.

    ``pins`` are the host keys that ``open_session`` expects. ``windows`` says which hosts run Windows.
    """

    def __init__(
        self,
        open_session: Callable[[str], Session],
        open_power: Callable[[str], PowerControl | None],
        kube: KubeApi,
        facts: Mapping[str, HostFact],
        clock: Clock,
        pins: HostKeyPins | None = None,
        windows: WindowsFacts | None = None,
    ) -> None:
        self._open_session, self._open_power = open_session, open_power
        self._linux_facts, self._windows = facts, windows or WindowsFacts(lambda _: False, dict)
        self._pins = pins or HostKeyPins()
        self._kube, self._api = KubeTransport(kube, clock), ApiFacts(kube)
        self._sessions: dict[str, Session] = {}
        self._powers: dict[str, PowerControl | None] = {}
        self._fact_cache: dict[tuple[str, str], Any] = {}
        self._node_locks: dict[str, Lock] = {}
        self._lock = Lock()
        self._pseudo_facts: dict[str, Callable[[str], Any]] = {
            PseudoFact.MACHINE: self._power_state,
            PseudoFact.STOPPING: self._is_stopping,
            PseudoFact.RESTART_POLICY: self.restart_policy,
            PseudoFact.HOST_KEY: self._host_key,
            PseudoFact.POWER_IDENTITY: self._power_identity_key,
            PseudoFact.ADDRESSES: self._addresses,
            PseudoFact.WINRM_QUOTAS: self._service_quotas,
            PseudoFact.NODE_NAME: lambda node: node,
        }

    def limited_to(self, permissions: Sequence[Permission]) -> AbstractContextManager[None]:
        """Inside the block, refuse commands to the API server that exceed ``permissions``."""
        return self._kube.limited_to(permissions)

    def session(self, node: str) -> Session:
        """The node's session. Raises NodefallError when the host cannot be reached or trusted."""
        with self._node_lock(node):
            if node not in self._sessions:
                self._sessions[node] = self._open_session(node)
            return self._sessions[node]

    def power(self, node: str) -> PowerControl | None:
        """The power control of the node, or None."""
        with self._node_lock(node):
            if node not in self._powers:
                self._powers[node] = self._open_power(node)
            return self._powers[node]

    def read(self, node: str, fact: str, given: Mapping[str, Any] = _NO_INPUTS) -> Any:
        """Read the current value of a fact; ``given`` are inputs that only the caller has. Raises NodefallError."""
        if read := self._pseudo_facts.get(fact):
            return read(node)
        if fact == PseudoFact.BOOT_POSTED:
            return self._api.boot_id(node) == self.read(node, "boot-id")
        if self._api.supports(fact):
            return self._api.read(node, fact)
        if fact == PseudoFact.CONNECTION_PEERS and (address := self._client_address(node)):
            return [address]
        if fact == PseudoFact.SSH_PEER and (peer := self._peer(node)):
            return peer
        try:
            host_fact = find_fact(self._facts_of(node), fact)
            command = host_fact.command_for(
                {name: given[name] if name in given else self._cached_fact(node, name) for name in host_fact.needs}
            )
        except ValueError as error:
            raise UnknownFact(f"{fact} of {node}: {error}") from error
        outcome = self.send(node, command)
        if outcome.delivery is not Delivery.ANSWERED:
            raise UnknownFact(f"{fact} of {node}: {outcome.error or 'connection lost'}")
        if outcome.error:  # as a part of the output that was not stored
            raise UnknownFact(f"{fact} of {node}: {outcome.error}")
        try:
            return host_fact.parse(outcome.stdout, outcome.exit or 0)
        except ValueError as error:
            detail = re.sub(r"^Command failed \S+$", "", outcome.stderr, flags=re.MULTILINE).strip().splitlines()[-1:]
            raise UnknownFact(": ".join([f"{fact} of {node}", str(error), *detail])) from error

    def system_of(self, node: str) -> str:
        """The operating system of the node's host, from the inventory."""
        return "windows" if self._windows.is_windows(node) else "linux"

    def crash_tool(self, node: str) -> str:
        """The path of the program that crashes the node's host, from the inventory, or ""."""
        return self._windows.crash_tool(node)

    def _facts_of(self, node: str) -> Mapping[str, HostFact]:
        return self._windows.load_facts() if self._windows.is_windows(node) else self._linux_facts

    def has_fact(self, node: str, fact: str) -> bool:
        """Whether the operating system of the node's host has such a fact; facts from other sources always exist."""
        if fact in self._pseudo_facts or fact == PseudoFact.BOOT_POSTED or self._api.supports(fact):
            return True
        return FactRef.parse(fact).name in self._facts_of(node)

    def _cached_fact(self, node: str, fact: str) -> Any:
        """A fact that other facts need, read once and then cached."""
        if (node, fact) not in self._fact_cache:
            self._fact_cache[node, fact] = self.read(node, fact)
        return self._fact_cache[node, fact]

    def invalidate(self, node: str) -> None:
        """Drop the cached input facts: units and connections may differ after a fault."""
        for key in [key for key in list(self._fact_cache) if key[0] == node]:
            self._fact_cache.pop(key, None)

    def check(self, node: str, check: FactCheck) -> tuple[bool, str]:
        """Whether a check holds now, and what was observed. An unknown fact does not hold."""
        try:
            value = self.read(node, check.fact)
        except NodefallError as error:
            return False, f"{error.message} ({error.hint})" if error.hint else error.message
        return value == check.value, fact_text(check.fact, value if isinstance(value, str) else json.dumps(value))

    def send(self, node: str, command: Command) -> Outcome:
        """Send one command to the host, the API server or the power control.

        Raises NodefallError only if nothing was sent.
        """
        begin = time.monotonic()
        try:
            outcome = self._send(node, command)
        except NodefallError as error:
            _log.debug("%s: %s: not sent: %s", node, command, error.message)
            raise
        taken = time.monotonic() - begin
        _log.debug(
            "%s: %s: %s, exit %s in %.3f s %s", node, command, outcome.delivery, outcome.exit, taken, outcome.error
        )
        return outcome

    def _send(self, node: str, command: Command) -> Outcome:
        if isinstance(command, HostCommand):
            outcome = self.session(node).run(command)
            if outcome.delivery is Delivery.NOT_SENT:
                self.disconnect(node)
            return outcome
        if isinstance(command, ApiCommand):
            return self._kube.send(command)
        return self._send_power(node, command)

    def _send_power(self, node: str, command: PowerCommand) -> Outcome:
        power = self.power(node)
        if power is None:
            raise Refused(f"{node} has no power control", hint="configure power for its host in the inventory")
        try:
            run_power_command(power, command)
        except (Unreachable, Refused) as error:
            return Outcome(Delivery.NOT_SENT, error=error.message)
        except NodefallError as error:  # the command may have worked: the state is read later
            return Outcome(Delivery.LOST, error=error.message)
        finally:
            if command.verb is PowerVerb.ON:
                self.disconnect(node)  # the connection is one to the machine of before, at the address of before
        return Outcome(Delivery.ANSWERED, 0)

    def expect_host_key(self, node: str, key: str) -> None:
        """Send to the node's host only if it presents ``key``, which an earlier process has seen."""
        self._pins.of(node).expect(key)

    def restart_policy(self, node: str) -> str:
        """The machine's automatic restart policy, or "" if it has none."""
        power = self.power(node)
        return power.restart_policy() if isinstance(power, RestartPolicyControl) else ""

    def power_identity(self, node: str) -> PowerIdentity:
        """The identity of the machine that the power control switches; empty if nothing is known."""
        power = self.power(node)
        return power.identity() if isinstance(power, MachineIdentity) else PowerIdentity()

    def power_risks(self, node: str) -> tuple[PowerRisk, ...]:
        """Why the node's machine must not go down now, as its power control reports. Raises NodefallError."""
        power = self.power(node)
        return power.risks() if isinstance(power, MachineRisks) else ()

    def disconnect(self, node: str) -> None:
        """Close the node's session; programs that run there continue.

        The host is looked up again next time, as its address may have changed with a restart.
        """
        session = self._sessions.pop(node, None)
        if session:
            session.close()

    def close(self) -> None:
        """Close every session."""
        for node in list(self._sessions):
            self.disconnect(node)

    def _node_lock(self, node: str) -> Lock:
        """The lock of one node, so that a host that does not respond does not delay the others."""
        with self._lock:
            return self._node_locks.setdefault(node, Lock())

    def _power_state(self, node: str) -> str:
        power = self.power(node)
        if power is None:
            raise UnknownFact(f"machine of {node}: it has no power control")
        return power.state()

    def _is_stopping(self, node: str) -> bool:
        power = self.power(node)
        return power.is_stopping() if isinstance(power, StopProgress) else False

    def _host_key(self, node: str) -> str:
        session = self.session(node)
        if isinstance(session, RelayedSession):
            session.connect()
        key = self._pins.of(node).key
        if not key:
            raise UnknownFact(f"{PseudoFact.HOST_KEY} of {node}: its transport does not report one")
        return key

    def _client_address(self, node: str) -> str:
        """The client address that the host sees, "" if only a program there can read it. Raises NodefallError."""
        session = self.session(node)
        text = session.client_address() if isinstance(session, ServiceSession) else ""
        try:
            return str(plain_address(text)) if text else ""
        except ValueError as error:
            raise UnknownFact(f"{PseudoFact.CONNECTION_PEERS} of {node}: ClientIP is {text[:80]!r}") from error

    def _peer(self, node: str) -> dict[str, str | int]:
        session = self.session(node)
        return session.peer() if isinstance(session, RelayedSession) else {}

    def _service_quotas(self, node: str) -> dict[str, int]:
        session = self.session(node)
        return session.service_quotas() if isinstance(session, ServiceSession) else {}

    def _addresses(self, node: str) -> list[str]:
        power = self.power(node)
        if power is None or not isinstance(power, MachineAddresses):
            raise UnknownFact(f"{PseudoFact.ADDRESSES} of {node}: its power control does not report them")
        return [interface.partition("/")[0] for interface in power.interfaces()]

    def _power_identity_key(self, node: str) -> str:
        key = self.power_identity(node).key
        if not key:
            raise UnknownFact(f"{PseudoFact.POWER_IDENTITY} of {node}: its power control does not report one")
        return key
