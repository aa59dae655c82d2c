"""Rules of the operating systems: systemd-logind, and the shutdown of Windows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class LogindRules:
    """logind.conf(5), src/login; facts 1.1, 1.7 and 18.

    ``cancels_in_flight_since``: first systemd whose ``shutdown -c`` cancels a shutdown that is being delayed.
    ``announces_schedules``: PrepareForShutdown is sent when a shutdown is scheduled.
    """

    inhibit_delay_max: float = 5.0  # InhibitDelayMaxSec
    handle_power_key: str = "poweroff"  # HandlePowerKey
    cancels_in_flight_since: int = 257
    announces_schedules: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class WindowsRules:
    """The service control manager and InitiateShutdown; facts 3.

    ``wrapped_services_notified``: a program under nssm gets the pre-shutdown notice.
    ``countdown_announced``: the notice comes when a countdown starts. ``late_abort_accepted``: ``shutdown /a`` succeeds
    without effect once services are notified.
    """

    default_preshutdown_timeout: float = 10.0  # since build 15063; 180 before
    limits_preshutdown: bool = True
    wrapped_services_notified: bool = False
    countdown_announced: bool = False
    late_abort_accepted: bool = False
