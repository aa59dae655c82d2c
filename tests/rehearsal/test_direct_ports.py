"""The ports of a rehearsal: hosts, power and API by call, with the outcomes that they have over the network."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import structs

from chaos.cluster.errors import REFUSED, TIMEOUT, KubeUnreachable
from chaos.core.action import FactCheck
from chaos.core.command import Delivery, HostCommand, Outcome, PowerCommand, PowerState, PowerVerb
from chaos.core.errors import NodefallError, Refused
from chaos.core.inventory import Inventory
from chaos.core.windows import powershell, system_program
from chaos.lab.facade import LabSpec
from chaos.lab.spec import NodeSpec
from chaos.lab.windows.machine import WindowsMachine
from chaos.lab.winshell.process import FILE_NOT_FOUND
from chaos.rehearsal.connection import DirectConnection, connect_directly
from chaos.rehearsal.hosts import DirectPower

SPEC = LabSpec(nodes=[NodeSpec(name="cp", role="control-plane"), NodeSpec(name="w1"), NodeSpec(name="w2")])
TRUE = HostCommand(("true",))


@pytest.fixture
def connection() -> Iterator[DirectConnection]:
    with connect_directly(SPEC, None) as connection:
        yield connection


def test_a_command_is_answered_with_its_exit_code(connection: DirectConnection) -> None:
    hosts = connection.ports.hosts
    outcome = hosts.send("w1", HostCommand(("sh", "-c", "echo out; whoami; false")))
    assert (outcome.delivery, outcome.exit, outcome.stdout) == (Delivery.ANSWERED, 1, "out\nroot\n")
    assert hosts.send("w1", HostCommand(("whoami",), sudo=False)).stdout == "chaos\n"


def test_a_command_that_takes_too_long_is_lost(connection: DirectConnection) -> None:
    begin = connection.ports.clock.now()
    outcome = connection.ports.hosts.send("w1", HostCommand(("sleep", "60"), timeout=10.0))
    assert outcome.delivery is Delivery.LOST
    assert "no answer within 10 s; the command may still be running" in outcome.error
    assert connection.ports.clock.now() - begin == pytest.approx(10.0)


def test_a_command_is_lost_with_its_machine(connection: DirectConnection) -> None:
    machine = connection.lab.cluster.machines["w1"]
    connection.lab.sim.after(5.0, machine.power_off)
    outcome = connection.ports.hosts.send("w1", HostCommand(("sleep", "60"), timeout=100.0))
    assert (outcome.delivery, outcome.error) == (
        Delivery.LOST,
        "the connection to w1 was lost before the command ended",
    )


def test_what_is_off_is_not_reached(connection: DirectConnection) -> None:
    hosts, machine = connection.ports.hosts, connection.lab.cluster.machines["w1"]
    assert hosts.send("w1", TRUE).exit == 0
    machine.power_off()
    outcome = hosts.send("w1", TRUE)
    assert outcome.delivery is Delivery.NOT_SENT
    assert "w1 cannot be reached: Connection refused" in outcome.error
    with pytest.raises(NodefallError, match="w1 cannot be reached"):
        hosts.session("w1")


def test_a_partitioned_host_still_answers(connection: DirectConnection) -> None:
    connection.lab.cluster.machines["w1"].partition()
    assert connection.ports.hosts.send("w1", TRUE).exit == 0


def test_an_armed_command_needs_its_connection(connection: DirectConnection) -> None:
    hosts, machine = connection.ports.hosts, connection.lab.cluster.machines["w1"]
    begin = connection.ports.clock.now()
    armed, cut, cancelled = (hosts.session("w1").arm(TRUE) for _ in range(3))
    armed.release()
    assert armed.wait() == Outcome(Delivery.ANSWERED, 0, began=begin)
    cancelled.cancel()
    machine.reset()
    connection.ports.clock.sleep(30.0)
    assert hosts.send("w1", TRUE).exit == 0
    assert {cut.wait().delivery, cancelled.wait().delivery} == {Delivery.NOT_SENT}


def test_closing_a_session_ends_its_waits_and_not_its_programs(connection: DirectConnection) -> None:
    ports = connection.ports
    with ports.clock.threads.pool(2) as pool:
        one = pool.submit(ports.hosts.send, "w1", HostCommand(("sleep", "20")))
        two = pool.submit(ports.hosts.send, "w1", HostCommand(("sleep", "2")))
        ports.clock.sleep(5.0)
        assert (one.done(), two.result().delivery) == (False, Delivery.ANSWERED)
        ports.hosts.disconnect("w1")
    assert one.result().delivery is Delivery.LOST


def test_the_identity_of_a_machine_is_checked(connection: DirectConnection) -> None:
    hosts, machine = connection.ports.hosts, connection.lab.cluster.machines["w1"]
    assert hosts.read("w1", "boot-id") == machine.boot_id
    assert hosts.read("w1", "machine-id") == machine.machine_id
    assert hosts.power_identity("w1").system_uuid == machine.system_uuid
    key = hosts.read("w1", "host-key")
    assert hosts.check("w1", FactCheck("host-key", key))[0]
    hosts.disconnect("w1")
    connection.lab.hosts["w1"].machine = connection.lab.hosts["w2"].machine
    with pytest.raises(Refused, match="now leads to a different machine"):
        hosts.session("w1")


def test_power_is_switched(connection: DirectConnection) -> None:
    hosts = connection.ports.hosts
    assert hosts.send("w1", PowerCommand(PowerVerb.OFF)).delivery is Delivery.ANSWERED
    assert hosts.read("w1", "machine") == PowerState.OFF
    assert hosts.send("w1", PowerCommand(PowerVerb.OFF)).delivery is Delivery.ANSWERED  # it is off already
    hosts.send("w1", PowerCommand(PowerVerb.ON))
    assert hosts.read("w1", "machine") == PowerState.ON


def test_kubelets_refuse_and_time_out(connection: DirectConnection) -> None:
    kube, machine = connection.ports.kube, connection.lab.cluster.machines["w1"]
    assert kube.kubelet(machine.address, machine.kubelet_port, "/healthz").body == b"ok"
    machine.kubelet.freeze()
    begin = connection.ports.clock.now()
    with pytest.raises(KubeUnreachable) as frozen:
        kube.kubelet(machine.address, machine.kubelet_port, "/healthz")
    assert frozen.value.kind == TIMEOUT
    assert connection.ports.clock.now() - begin == pytest.approx(5.0)
    machine.power_off()
    with pytest.raises(KubeUnreachable) as off:
        kube.kubelet(machine.address, machine.kubelet_port, "/healthz")
    assert off.value.kind == REFUSED


def test_a_watch_is_refused(connection: DirectConnection) -> None:
    with pytest.raises(Refused, match="a rehearsal has no watches"):
        connection.ports.kube.stream("/api/v1/pods", {})


def test_a_windows_host_takes_command_lines() -> None:
    spec = LabSpec(nodes=[NodeSpec(name="cp", role="control-plane"), NodeSpec(name="w1", os="windows")])
    with connect_directly(spec, None) as connection:
        hosts, machine = connection.ports.hosts, connection.lab.cluster.machines["w1"]
        outcome = hosts.send("w1", HostCommand((r"C:\Windows\System32\hostname.exe",)))
        assert (outcome.delivery, outcome.exit, outcome.stderr) == (Delivery.ANSWERED, 0, "")
        assert outcome.stdout.lower() == "w1\n"
        assert hosts.read("w1", "boot-id") == machine.boot_id
        machine.power_off()
        assert hosts.send("w1", HostCommand((r"C:\Windows\System32\hostname.exe",))).delivery is Delivery.NOT_SENT


def test_the_task_scheduler_runs_programs_and_gets_their_exit_code() -> None:
    spec = LabSpec(nodes=[NodeSpec(name="cp", role="control-plane"), NodeSpec(name="w1", os="windows")])
    with connect_directly(spec, None) as connection:
        machine = connection.lab.cluster.machines["w1"]
        assert isinstance(machine, WindowsMachine)
        codes: list[int] = []
        run = machine.tasks.run
        assert run is not None
        wait: dict[str, Any] = {"program": system_program("hostname"), "arguments": [], "task": "none"}
        run(" ".join(powershell("failsafe-run", wait=5, **wait)), codes.append)
        run(r"C:\nowhere.exe", codes.append)
        assert codes == [FILE_NOT_FOUND]
        ended = run(" ".join(powershell("failsafe-run", wait=60, **wait)), codes.append)
        connection.ports.clock.sleep(10.0)
        ended()
        connection.ports.clock.sleep(100.0)
        assert codes == [FILE_NOT_FOUND, 0], "what the scheduler ends reports nothing"


@pytest.mark.parametrize(
    ("transport", "verb"), [("ssh", PowerVerb.OFF), ("ssh", PowerVerb.SOFT_OFF), ("docker", PowerVerb.OFF)]
)
def test_a_power_control_that_lies_answers_and_does_nothing(transport: str, verb: PowerVerb) -> None:
    """The machine runs on, in the same boot, and answers. With transport docker the engine is the power control."""
    document = {"apiVersion": "nodefall.dev/v1alpha1", "kind": "Inventory", "metadata": {"name": "lies"}, "lab": {}}
    settings = Inventory.model_validate(document | {"defaults": {"transport": transport}})
    with connect_directly(structs.replace(SPEC, power_lies=True), settings) as made:
        hosts, machine, clock = made.ports.hosts, made.lab.cluster.machines["w1"], made.ports.clock
        boot = machine.boot_id, machine.pid1_start
        power = hosts.power("w1")
        assert power is not None
        assert isinstance(power, DirectPower) == (transport == "ssh")
        assert hosts.send("w1", PowerCommand(verb)).delivery is Delivery.ANSWERED
        assert clock.sleep(60.0)
        assert power.state() is PowerState.OFF
        assert hosts.send("w1", TRUE).exit == 0
        assert hosts.power("w2").state() is PowerState.ON  # type: ignore[union-attr]
        assert hosts.send("w1", PowerCommand(PowerVerb.ON)).delivery is Delivery.ANSWERED
        assert power.state() is PowerState.ON
        assert (machine.state, machine.boot_id, machine.pid1_start) == ("on", *boot)
