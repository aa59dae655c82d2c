"""winrm/config: quotas of the service, and the document that a Get answers with."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files

IDLE_TIMEOUT = 7200.0  # seconds


@dataclass(slots=True)
class WinRmConfig:
    """Quotas with the defaults of Windows Server 2016 and later."""

    max_operations_per_user: int = 1500
    max_shells_per_user: int = 2147483647

    def document(self) -> str:
        """The element Config, with every value in the recorded order."""
        text = (files(__package__) / "config.xml").read_text(encoding="ascii")
        lines = "".join(line.strip() for line in text.splitlines())
        return lines.format(operations=self.max_operations_per_user, shells=self.max_shells_per_user)
