"""A node with a slow line to others."""

from __future__ import annotations

from pydantic import Field, field_validator

from chaos.core.action import Proof, Target
from chaos.core.errors import Unsupported
from chaos.faults.actions._bandwidth_proof import BURST, LARGEST_BURST, check_bandwidth, parse_rate
from chaos.faults.actions._netem import NetemAction
from chaos.faults.actions._netem_params import NetemParams

_SLOWEST, _FASTEST = 64_000, 100_000_000  # bits a second: what pings can measure
_HEADERS = 100  # bytes before a packet of IP, at most
_MIN_QUEUE, _QUEUE_SECONDS = 50_000, 0.4  # bytes, seconds at the rate


class Params(NetemParams):
    """How much passes in a second."""

    rate: str = Field(description="of all these packets together, from 64kbit to 100mbit a second, as 1mbit")

    @field_validator("rate")
    @classmethod
    def _validate_rate(cls, value: str) -> str:
        if not _SLOWEST <= parse_rate(value) <= _FASTEST:
            raise ValueError("rate is from 64kbit to 100mbit")
        return value


class Bandwidth(NetemAction[Params]):
    """Lets at most ``rate`` pass between host or pods and the peers, by tbf. nodefall's own connection is exempt.

    What is sent faster waits in a queue of 50 kB, or of 0.4 s if that is more, and is dropped when it is full. Several
    peers share the rate; with ``direction: both`` each direction has it. Proven by 25 pings of 1400 bytes at once, of
    which the last has to wait for the others.
    """

    name = "bandwidth"
    summary = "limit the rate of a node's packets to or from the control plane, other nodes, zones or networks"
    example = "{name: narrow, action: bandwidth, target: victim, with: {rate: 1mbit, duration: 100s}}"
    params = Params
    proofs = (Proof("pings-at-once-take-long", check_bandwidth),)
    feature = "tbf"
    facts = (*NetemAction.facts, "link-mtus")
    measured_by = "ping-bursts"

    def effect(self, target: Target, params: Params, interface: str) -> str:
        rate, burst = parse_rate(params.rate), _burst(target, interface)
        return f"tbf rate {rate}bit burst {burst} limit {max(_MIN_QUEUE, int(_QUEUE_SECONDS * rate / 8))}"


def _burst(target: Target, interface: str) -> int:
    """Bytes that may pass at once: tbf drops packets that are larger (tbf_enqueue, net/sched/sch_tbf.c).

    Raises Unsupported for an interface with so large ones that the proof would take that for a higher rate.
    """
    mtu: int = target.require_fact("link-mtus", "no packet may be larger than what passes at once").get(interface, 0)
    if (burst := max(BURST, mtu + _HEADERS)) > LARGEST_BURST:
        raise Unsupported(f"{interface} of {target.node} has packets of {mtu} bytes", hint="choose another node")
    return burst


ACTION = Bandwidth()
