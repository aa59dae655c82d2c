"""Shutdown that is scheduled at logind."""

from __future__ import annotations

from chaos.facts.login1 import Property

FACT = Property("scheduled-shutdown", "kind and time (microseconds) of the scheduled shutdown", "ScheduledShutdown")
