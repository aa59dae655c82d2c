"""The shutdown that logind has been told to do later."""

from __future__ import annotations

from chaos.facts.login1 import Property

FACT = Property("scheduled-shutdown", "kind and time (microseconds) of the scheduled shutdown", "ScheduledShutdown")
