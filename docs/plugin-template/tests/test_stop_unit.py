"""Action ``stop-unit``, without a host: what it sends and undoes, as a table."""

import pytest
from nodefall_stop_unit import ACTION, Params
from pydantic import ValidationError

from chaos.extend.action import Target, Unsupported
from chaos.testing import check_action

FACT = "unit-state?unit=cron.service"
TARGET = Target("worker-1", facts={FACT: "active"}, tag="run-1-stop")


def test_it_stops_the_unit_and_starts_it_again() -> None:
    program = ACTION.program(ACTION.prepare(TARGET, Params(unit="cron.service")))
    assert [str(command) for command in program.commands] == ["systemctl stop cron.service"]
    assert [str(step.command) for step in program.undo.steps] == ["systemctl start cron.service"]
    assert [str(check) for check in program.undo.proof] == [f"{FACT} is active", "the node is Ready"]
    assert [str(check) for check in program.preconditions] == [f"{FACT} is active"]
    assert program.failsafe.argv == ("systemctl", "start", "cron.service")


def test_it_keeps_the_contract_of_actions() -> None:
    check_action(ACTION, TARGET, Params(unit="cron.service"))


@pytest.mark.parametrize("facts", [{FACT: "inactive"}, {}])
def test_a_unit_that_does_not_run_is_refused(facts: dict[str, str]) -> None:
    with pytest.raises(Unsupported):
        ACTION.prepare(Target("worker-1", facts=facts), Params(unit="cron.service"))


@pytest.mark.parametrize("unit", ["-H.service", "cron", "cron.service -H host", ""])
def test_what_is_no_unit_is_refused(unit: str) -> None:
    with pytest.raises(ValidationError):
        Params(unit=unit)
