"""Domain of nodefall's account on the host."""

from __future__ import annotations

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact
from chaos.model.windows import system_program


class LoginDomain(HostFact):
    """Text in lower case: the part before the backslash, for a local account the computer's name of 15 characters."""

    name = "login-domain"
    summary = "domain of the account that nodefall uses on the host"
    command = HostCommand((system_program("whoami"),))

    def parse(self, stdout: str, exit_code: int) -> str:
        domain, separator, user = stdout.strip().rpartition("\\")
        if exit_code or not (separator and domain and user):
            raise ValueError("whoami is not understood")
        return domain.lower()


FACT = LoginDomain()
