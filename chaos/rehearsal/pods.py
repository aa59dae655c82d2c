"""Sessions of transport pod on the machines of a rehearsal: the pods are made as anywhere, exec is a call."""

from __future__ import annotations

from collections.abc import Callable

from chaos.core.command import Delivery, HostCommand, Outcome
from chaos.core.errors import NodefallError, Unreachable
from chaos.lab.facade import ApiError, DirectLab, DirectProgram, ExecError
from chaos.machines.pod.helpers import Helper
from chaos.machines.pod.manifest import ENTER
from chaos.machines.pod.session import HelperSlot
from chaos.machines.transports.host_keys import HostKeyPin
from chaos.rehearsal.hosts import DirectSession
from chaos.rehearsal.turns import Turns

_PROBE = HostCommand(("true",))


class DirectPodSession(DirectSession):
    """Implements ``Session`` and ``RelayedSession``; the host is known by its stable ID."""

    def __init__(
        self, lab: DirectLab, slot: HelperSlot, pin: HostKeyPin, turns: Turns, now: Callable[[], float]
    ) -> None:
        self._lab, self._slot = lab, slot
        super().__init__(lab.hosts[slot.node], pin, turns, now)

    def connect(self) -> int:
        """Verify the host. Returns the number of the boot. Raises NodefallError."""
        self._start(_PROBE)
        self._pin.verify(self._key(), self._name)
        return self._host.boot

    def _key(self) -> str:
        machine = self._host.machine
        return f"container {machine.container_id}" if machine.container_id else f"machine {machine.machine_id}"

    def peer(self) -> dict[str, str | int]:
        """See :class:`chaos.machines.pod.session.PodSession`."""
        return self._slot.kubelet_peer()

    def run(self, command: HostCommand) -> Outcome:
        """Run ``command`` to its end; failures are in the outcome."""
        try:
            self.connect()
            program = self._start(command)
        except NodefallError as error:
            return Outcome(Delivery.NOT_SENT, error=f"{error.message} ({error.hint})" if error.hint else error.message)
        is_closed = not (program.task.done or program.is_lost) and self._wait(program, command.timeout)
        return self._outcome(command, program, is_closed=is_closed)

    def _start(self, command: HostCommand) -> DirectProgram:
        while True:
            helper = self._slot.get()
            try:
                return self._exec(helper, command)
            except Unreachable:
                if not self._slot.renew(helper):
                    raise

    def _exec(self, helper: Helper, command: HostCommand) -> DirectProgram:
        try:
            return self._lab.exec(helper.namespace, helper.name, [*ENTER, *command.argv], command.stdin)
        except (ApiError, ExecError) as error:
            raise Unreachable(f"{self._name} ({helper}): exec failed: {error}") from error
