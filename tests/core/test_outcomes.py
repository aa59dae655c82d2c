"""Failed commands that had no effect, and those that may have had one."""

from __future__ import annotations

import pytest

from chaos.core.command import (
    Command,
    Delivery,
    HostCommand,
    KubeCommand,
    Outcome,
    PodsCommand,
    PodSelector,
    PodVerb,
    PowerCommand,
    PowerVerb,
    TaintsCommand,
    had_no_effect,
)

STOP = HostCommand(("systemctl", "stop", "x.service"))
PATCH = KubeCommand("PATCH", "/api/v1/nodes/n1", {})


def answered(code: int) -> Outcome:
    return Outcome(Delivery.ANSWERED, code)


@pytest.mark.parametrize(
    ("command", "outcome", "expected"),
    [
        (STOP, answered(5), True),
        (HostCommand(("systemctl", "--no-block", "stop", "x.service")), answered(5), True),
        (HostCommand(("systemctl", "stop", "x.service", "y.service")), answered(5), False),
        (HostCommand(("sh", "-c", "true"), accept=(0,)), answered(5), False),
        (HostCommand(("systemctl", "stop", "x.timer"), accept=(0, 5)), answered(5), False),
        (STOP, answered(1), False),
        (STOP, answered(0), False),
        (STOP, Outcome(Delivery.LOST), False),
        (STOP, Outcome(Delivery.NOT_SENT), True),
        (PowerCommand(PowerVerb.OFF), Outcome(Delivery.NOT_SENT), True),
        (PowerCommand(PowerVerb.OFF), Outcome(Delivery.LOST), False),
        (PATCH, answered(403), True),
        (PATCH, answered(503), False),
        (PATCH, answered(200), False),
        (TaintsCommand("n1"), answered(409), True),
        (PodsCommand(PodVerb.DELETE, PodSelector(node="n1")), answered(2), False),
    ],
)
def test_which_failures_had_no_effect(command: Command, outcome: Outcome, expected: bool) -> None:
    assert had_no_effect(command, outcome) is expected
