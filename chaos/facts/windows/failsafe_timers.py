"""Failsafe tasks of nodefall on the host."""

from __future__ import annotations

from chaos.model.fact import HostFact
from chaos.model.windows import LIST_TASKS, parse_task_names


class FailsafeTimers(HostFact):
    """Sorted list of task names, as ``["nodefall-0a1b2c-cut"]``."""

    name = "failsafe-timers"
    summary = "failsafe tasks of nodefall that the host still has"
    command = LIST_TASKS

    def parse(self, stdout: str, exit_code: int) -> list[str]:
        if exit_code:
            raise ValueError("schtasks.exe is not understood")
        # a task with several triggers has as many rows
        return sorted({name for name in parse_task_names(stdout) if name.startswith("nodefall-")})


FACT = FailsafeTimers()
