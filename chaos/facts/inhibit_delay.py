"""logind's limit on delay locks. No shutdown is graceful if it is shorter than the kubelet's grace period."""

from __future__ import annotations

from chaos.facts.login1 import Property

FACT = Property("inhibit-delay-max", "logind's limit on delay locks, in microseconds", "InhibitDelayMaxUSec")
