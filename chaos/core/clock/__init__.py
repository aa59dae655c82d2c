"""The only sources of now() and sleep() in the product: this machine's clock, or a time source of the lab."""

from chaos.core.clock.remote import RemoteClock
from chaos.core.clock.system import SystemClock

__all__ = ["RemoteClock", "SystemClock"]
