"""PreparingForShutdown of logind: a shutdown has begun and waits for delay locks."""

from __future__ import annotations

from chaos.facts.login1 import Property

FACT = Property("preparing-for-shutdown", "whether a shutdown has begun", "PreparingForShutdown")
