"""What logind does when the power button is pressed: logind.conf(5), HandlePowerKey."""

from __future__ import annotations

from chaos.facts.login1 import Property

FACT = Property("power-key", "what logind does when the power button is pressed", "HandlePowerKey")
