"""How long logind waits for delay locks: less than the kubelet's grace period, and no shutdown is graceful."""

from __future__ import annotations

from chaos.facts.login1 import Property

FACT = Property("inhibit-delay-max", "longest wait for delay locks, in microseconds", "InhibitDelayMaxUSec")
