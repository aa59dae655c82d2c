"""An action of another package, ``sysctl``, without a host: what it sends, undoes and refuses."""

import pytest
from pydantic import ValidationError

from chaos.core.action import Needs, Target
from chaos.core.errors import Unsupported
from chaos.testing import check_action
from tests.api.outside.nodefall_sysctl import ACTION, Params

FACT = "sysctl?key=vm.swappiness"
TARGET = Target("worker-1", facts={FACT: "60"}, tag="run-1-swap", max_duration=300.0)
PARAMS = Params(key="vm.swappiness", value="10")


def test_commands_and_undo() -> None:
    program = ACTION.program(ACTION.prepare(TARGET, PARAMS))
    assert [str(command) for command in program.commands] == ["sysctl -w vm.swappiness=10"]
    assert [str(check) for check in program.preconditions] == [f"{FACT} is 60"]
    assert [(str(step.command), str(step.unless)) for step in program.undo.steps] == [
        ("sysctl -w vm.swappiness=60", f"{FACT} is 60")
    ]
    assert [str(check) for check in program.undo.proof] == [f"{FACT} is 60", "the node is Ready"]


def test_the_timer_restores_it_and_undo_disarms_the_timer() -> None:
    program = ACTION.program(ACTION.prepare(TARGET, PARAMS))
    timer = program.failsafe
    assert timer is not None
    assert (timer.seconds, timer.argv) == (300.0, ("sysctl", "-w", "vm.swappiness=60"))
    assert timer.unit == program.undo.disarm == "nodefall-run-1-swap"


def test_the_parameter_is_read_before_and_after() -> None:
    assert ACTION.needs_with(PARAMS) == Needs((FACT,), (FACT,))


def test_several_numbers_are_written_as_they_are_read() -> None:
    ports = "sysctl?key=net.ipv4.ip_local_port_range"
    target = Target("worker-1", facts={ports: "32768 60999"})
    given = Params(key="net.ipv4.ip_local_port_range", value="40000\t40100")
    assert ACTION.prepare(target, given).value == "40000 40100"


def test_it_keeps_the_contract_of_actions() -> None:
    check_action(ACTION, TARGET, PARAMS)


@pytest.mark.parametrize(
    ("target", "why"),
    [
        (Target("worker-1", facts={FACT: "10"}), "vm.swappiness is 10 already"),
        (Target("worker-1", unknown={FACT: "there is no kernel parameter"}), "there is no kernel parameter"),
        (Target("worker-1"), "it was not read"),
    ],
)
def test_a_parameter_that_is_missing_or_has_the_value_is_refused(target: Target, why: str) -> None:
    with pytest.raises(Unsupported, match=why):
        ACTION.prepare(target, PARAMS)


@pytest.mark.parametrize(("key", "value"), [("swappiness", "1"), ("vm.x=1 y.z", "1"), ("-w.x", "1"), ("vm.x", " ")])
def test_bad_parameters(key: str, value: str) -> None:
    with pytest.raises(ValidationError, match="kernel parameter"):
        Params(key=key, value=value)
