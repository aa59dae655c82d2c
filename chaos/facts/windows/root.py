"""Administrator's rights of commands."""

from __future__ import annotations

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact
from chaos.model.windows import system_program

_ELEVATED = ("S-1-16-12288", "S-1-16-16384")  # integrity levels high and system; names of groups are translated


class Root(HostFact):
    """True or false: true if commands run elevated, that is with all rights of an administrator."""

    name = "root"
    summary = "whether commands run with the rights of an administrator"
    command = HostCommand((system_program("whoami"), "/groups", "/fo", "csv", "/nh"))

    def parse(self, stdout: str, exit_code: int) -> bool:
        if exit_code or "S-1-" not in stdout:
            raise ValueError("whoami is not understood")
        return any(f'"{level}"' in stdout for level in _ELEVATED)


FACT = Root()
