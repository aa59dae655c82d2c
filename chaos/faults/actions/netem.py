"""Packets of a node delayed, dropped, changed, duplicated, or limited in their rate, on the way to or from peers.

A limited rate is proven by many pings sent together: the proof is how long the last one had to wait.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from chaos.core.action import Proof, ProofResult, ProofStatus, StepRun, Target
from chaos.core.duration import parse_duration
from chaos.core.errors import Unsupported
from chaos.core.evidence import no_proof
from chaos.core.field_types import DurationText
from chaos.core.timeline import Timeline
from chaos.faults.actions._netem import NETEM, PacketEffect, packet_action
from chaos.faults.actions._netem_proof import (
    before,
    check_corruption,
    check_duplicates,
    check_latency,
    check_loss,
    during,
    to_own_zone,
)
from chaos.faults.actions._peer_params import NetemParams
from chaos.faults.readings.pings import BURST_BYTES

BURST = 6000  # bytes that tbf lets pass at once: at 100 Mbit/s it is called every 0.5 ms
LARGEST_BURST = 9500  # for jumbo frames: with it, pings seem to pass 13 % faster than they do
_RATE = re.compile(r"(\d+(?:\.\d+)?)(k|m)bit")
_UNITS = {"k": 1_000, "m": 1_000_000}
_EXACT, _TWICE = 1.25, 2.0  # times the rate of the step


def parse_rate(text: str) -> int:
    """Parse a rate in bits per second. Raises ValueError."""
    match = _RATE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a rate such as 500kbit or 1mbit")
    return round(float(match[1]) * _UNITS[match[2]])


def check_bandwidth(timeline: Timeline, step: StepRun) -> ProofResult:
    """Proven if a burst took as long as the step's rate demands; disproven if it took less than half of that.

    Other packets of the node share the rate, so a lower one is proof as well.
    """
    readings, seqs, ended = during(timeline, step, "ping-bursts")
    if ended:
        return ended
    wanted = parse_rate(str(step.params["rate"]))
    found = _rates(readings)
    if not found:
        return no_proof(f"no burst of pings of {step.node} was fully answered after the step")
    usual, best = _rates(before(timeline, step, "ping-bursts")), max(found)
    shown = f", {_kbit(max(usual))} before" if usual else ""
    because = f"pings of {step.node} passed with {_kbit(best)}{shown} (asked {_kbit(wanted)})"
    if best > _TWICE * wanted:
        return ProofResult(ProofStatus.DISPROVEN, because, seqs)
    if not usual or max(usual) < _TWICE * wanted:
        return no_proof(f"{because}: it is not shown that more passed before the step")
    near_usual, near = map(_rates, to_own_zone(timeline, step, "ping-bursts"))
    if near and max(near_usual, default=0.0) >= _TWICE * wanted:
        because += f", {_kbit(max(near))} to its own zone"
        if max(near) < _TWICE * wanted:
            return no_proof(f"{because}: its own zone was not faster")
    return ProofResult(ProofStatus.PROVEN, because, seqs) if best <= _EXACT * wanted else no_proof(because)


def _rates(readings: Iterable[dict[str, float]]) -> list[float]:
    """Rates in bits per second, from readings without a loss."""
    return [rate for reading in readings if (rate := _rate(reading)) is not None]


def _rate(reading: dict[str, float]) -> float | None:
    """The rate in bits per second; None if a ping was lost."""
    if not reading["received"] or reading["received"] < reading["sent"]:
        return None
    return 8 * (BURST_BYTES - BURST) / max(reading["longest"], 1e-6)


def _kbit(rate: float) -> str:
    return f"{rate / 1000:.0f} kbit/s"


_MAX_SECONDS = 10.0  # a connection is given up after some more; that is a partition
_SLOWEST, _FASTEST = 64_000, 100_000_000  # bits a second: what pings can measure
_HEADERS = 100  # bytes before a packet of IP, at most
_MIN_QUEUE, _QUEUE_SECONDS = 50_000, 0.4  # bytes, seconds at the rate


class LatencyParams(NetemParams):
    """The delay of packets that leave or arrive."""

    delay: DurationText = Field(description="The delay of each packet, such as 200ms.")
    jitter: DurationText | None = Field(
        None, description="How much the delay varies. Packets may then overtake each other."
    )
    distribution: Literal["uniform", "normal"] | None = Field(
        None, description="The distribution of the jitter. By default, uniform."
    )

    @model_validator(mode="after")
    def _validate_delay(self) -> Self:
        delay, jitter = parse_duration(self.delay), parse_duration(self.jitter) if self.jitter else 0.0
        if not 0 < delay <= _MAX_SECONDS:
            raise ValueError(f"delay is more than 0 and at most {_MAX_SECONDS:g}s")
        if jitter > delay:
            raise ValueError("jitter is at most the delay")
        if self.distribution and not jitter:
            raise ValueError("distribution requires jitter")
        return self


def _delay(target: Target, params: LatencyParams, _: str) -> str:
    distribution = params.distribution or "uniform"
    if distribution == "normal" and "normal" not in target.require_fact("netem-support", "delays may vary"):
        why = f"{target.node}: its tc has no table of the {distribution} distribution"
        raise Unsupported(why, hint="use distribution: uniform")
    words = [NETEM, "delay", _milliseconds(params.delay)]
    if params.jitter:
        words += [_milliseconds(params.jitter), *(["distribution", "normal"] if distribution == "normal" else ())]
    return " ".join(words)


def _milliseconds(text: str) -> str:
    return f"{parse_duration(text) * 1000:g}ms"


LATENCY = packet_action(
    PacketEffect(LatencyParams, _delay, Proof("round-trips-rose", check_latency)),
    name="latency",
    summary="delay a node's packets to or from the control plane, other nodes, zones or networks",
    description="""
    Delays packets of the host and its pods with netem. nodefall's own connection is exempt. With ``direction: both``,
    round trips take twice the delay longer. To simulate a slow API server, use this action on all nodes with ``from:
    control-plane``. A multi-queue interface has only one queue in the meantime, which costs throughput.
    """,
    example="{name: slow, action: latency, target: victim, with: {delay: 200ms, jitter: 20ms, duration: 100s}}",
)


class LossParams(NetemParams):
    """The share of packets that are dropped."""

    percent: float = Field(
        ge=1, le=99, description="The percentage of packets that are lost at random. Use partition to drop all of them."
    )


PACKET_LOSS = packet_action(
    PacketEffect(
        LossParams,
        lambda _target, params, _interface: f"{NETEM} loss {params.percent:g}%",
        Proof("pings-are-lost", check_loss),
    ),
    name="packet-loss",
    summary="drop some of a node's packets to or from the control plane, other nodes, zones or networks",
    description="""
    Drops packets of the host and its pods at random with netem. nodefall's own connection is exempt.

    TCP repeats lost packets after 0.2 s, and then after twice as long each time (tcp(7)). Therefore only about 8
    losses in a row make a Lease 40 s late. With 30 % loss a node stays Ready; from about 60 % on, it sometimes
    becomes Unknown. A multi-queue interface has only one queue in the meantime, which costs throughput.
    """,
    example="{name: lossy, action: packet-loss, target: victim, with: {percent: 30, duration: 100s}}",
)


class CorruptParams(NetemParams):
    """The share of packets that are corrupted."""

    percent: float = Field(ge=1, le=99, description="The percentage of packets in which a bit is flipped at random.")

    @model_validator(mode="after")
    def _validate_direction(self) -> Self:
        """Inbound packets are changed after the network card has verified them: programs would get wrong data."""
        if self.direction != "out":
            raise ValueError("direction is out: the checksums of inbound packets have been verified before")
        return self


PACKET_CORRUPT = packet_action(
    PacketEffect(
        CorruptParams,
        lambda _target, params, _interface: f"{NETEM} corrupt {params.percent:g}%",
        Proof("changed-pings-are-lost", check_corruption),
    ),
    name="packet-corrupt",
    summary="flip a bit in some of a node's packets to the control plane, other nodes, zones or networks",
    description="""
    Flips a random bit in packets of the host and its pods with netem, after the checksums were computed. nodefall's
    own connection is exempt.

    The action changes only outbound packets. Inbound packets would be changed after the network card has verified
    them, and programs would get wrong data. The receiver discards such a packet because of its wrong checksum, so the
    packet is lost but still costs bandwidth. Pings prove the fault: some are lost although netem drops none. For
    about 6 % of pings, the flipped bit is in the sender's MAC address, which no one checks, and does no harm. The
    checksums of TCP, UDP and IP always find a single flipped bit.
    """,
    example="{name: corrupt, action: packet-corrupt, target: victim, with: {percent: 30, duration: 100s}}",
)


class DuplicateParams(NetemParams):
    """The share of packets that are sent twice."""

    percent: float = Field(ge=1, le=100, description="The percentage of packets that are duplicated at random.")


PACKET_DUPLICATE = packet_action(
    PacketEffect(
        DuplicateParams,
        lambda _target, params, _interface: f"{NETEM} duplicate {params.percent:g}%",
        Proof("pings-are-answered-twice", check_duplicates),
    ),
    name="packet-duplicate",
    summary="duplicate some of a node's packets to or from the control plane, other nodes, zones or networks",
    description="""
    Sends packets of the host and its pods twice with netem. nodefall's own connection is exempt. TCP discards
    duplicates. Protocols over UDP (DNS, QUIC, VXLAN) must do so themselves.
    """,
    example="{name: twice, action: packet-duplicate, target: victim, with: {percent: 30, duration: 100s}}",
)


class RateParams(NetemParams):
    """The rate to which packets are limited."""

    rate: str = Field(
        description="The rate of all these packets together, from 64kbit to 100mbit per second, such as 1mbit."
    )

    @field_validator("rate")
    @classmethod
    def _validate_rate(cls, value: str) -> str:
        if not _SLOWEST <= parse_rate(value) <= _FASTEST:
            raise ValueError("rate is from 64kbit to 100mbit")
        return value


def _limit(target: Target, params: RateParams, interface: str) -> str:
    rate, burst = parse_rate(params.rate), _burst(target, interface)
    return f"tbf rate {rate}bit burst {burst} limit {max(_MIN_QUEUE, int(_QUEUE_SECONDS * rate / 8))}"


def _burst(target: Target, interface: str) -> int:
    """The burst in bytes: tbf drops packets that are larger (tbf_enqueue, net/sched/sch_tbf.c).

    Raises Unsupported if the interface's packets are so large that the proof would measure a higher rate.
    """
    mtu: int = target.require_fact("link-mtus", "no packet may be larger than what passes at once").get(interface, 0)
    if (burst := max(BURST, mtu + _HEADERS)) > LARGEST_BURST:
        raise Unsupported(f"{interface} of {target.node} has packets of {mtu} bytes", hint="choose another node")
    return burst


BANDWIDTH = packet_action(
    PacketEffect(
        RateParams,
        _limit,
        Proof("pings-at-once-take-long", check_bandwidth),
        feature="tbf",
        measured_by="ping-bursts",
        facts=("link-mtus",),
    ),
    name="bandwidth",
    summary="limit the rate of a node's packets to or from the control plane, other nodes, zones or networks",
    description="""
    Limits the traffic between the host or its pods and the peers to ``rate`` with tbf. nodefall's own connection is
    exempt. Packets that are sent faster wait in a queue of 50 kB or 0.4 s, whichever is larger, and are dropped when
    the queue is full. All peers share the rate. With ``direction: both``, each direction has its own limit. The proof
    sends 25 pings of 1400 bytes at once, so that the last ping has to wait for the others.
    """,
    example="{name: narrow, action: bandwidth, target: victim, with: {rate: 1mbit, duration: 100s}}",
)
