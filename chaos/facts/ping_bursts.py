"""Many large pings at once from the host to an API server and to another node."""

from __future__ import annotations

from chaos.facts._pings import PingFact

_COUNT, _SIZE, _HEADERS = 25, 1400, 42  # of Ethernet, IPv4 and ICMP
BURST_BYTES = _COUNT * (_SIZE + _HEADERS)


class PingBursts(PingFact):
    """Mapping as that of ``round-trips``, of 25 pings of 1400 bytes that are sent at once: the last waits for all."""

    name = "ping-bursts"
    summary = "round trips of 25 large pings at once to an API server, and to another node: the rate of the line"
    # By default ping(8) lets only a few wait at its socket.
    ping_options = f"-n -q -l {_COUNT} -c {_COUNT} -s {_SIZE} -S 200000 -W 10"
    seconds = 45.0


FACT = PingBursts()
