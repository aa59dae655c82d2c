"""What ``nodefall plan`` prints of a step."""

from __future__ import annotations

from chaos.cli.run.plan import _step
from chaos.core.action import FailsafeTimer, Undo
from chaos.core.plan import PlannedStep
from chaos.core.windows import powershell


def test_a_failsafe_task_is_shown_as_the_name_of_its_script() -> None:
    timer = FailsafeTimer("nodefall-r1-stop", 60.0, powershell("failsafe-start-service", service="kubelet"))
    step = PlannedStep("stop", "kubelet-stop", "win-1", {}, {}, (), Undo(), ("kubelet-state",), (), timer)
    expected = (
        "  arm     failsafe timer nodefall-r1-stop: powershell.exe: failsafe-start-service"
        ' {"service":"kubelet"} after 60s, read back'
    )
    assert expected in _step(step)
