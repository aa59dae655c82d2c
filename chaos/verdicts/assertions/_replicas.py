"""Metrics of the controller-manager replicas: only the counters of the leader change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from chaos.core.indexes import LEADER_STATUS, starts_at_zero
from chaos.core.timeline import Scrape, Timeline

ReplicaSample = tuple[float, int, float | None, str]  # time, entry, value, reason for a missing value


def growth(last: float, value: float) -> float:
    """Increase of a counter between two samples; a counter that fell was reset."""
    return value if value < last else value - last


def replicas(timeline: Timeline) -> dict[str, list[Scrape]]:
    """Scrapes by URL; the other keys of ``timeline.metrics`` are names of nodes."""
    return {about: scrapes for about, scrapes in timeline.metrics.items() if "://" in about}


def leader_samples(found: Mapping[str, list[Scrape]], name: str) -> Iterator[ReplicaSample]:
    """Samples of the leader. Other replicas do not count, and an unreachable leader may still lead."""
    leader = ""
    for scrape, url in _in_order(found):
        if _is_leader(scrape):
            leader = url
            value = _value(scrape, name, starts_at_zero(name))
            yield scrape.t, scrape.seq, value, "the leader has no such metric"
        elif leader in ("", url):
            yield scrape.t, scrape.seq, None, _reason(scrape)


def increase_since(found: Mapping[str, list[Scrape]], name: str, anchor: float) -> Iterator[ReplicaSample]:
    """Increase summed over all replicas, at each sample of a leader: the leader may have changed in between."""
    begins = starts_at_zero(name) or any(name in scrape.values for scrapes in found.values() for scrape in scrapes)
    leader, grown = "", 0.0
    last: dict[str, float] = {}
    for scrape, url in _in_order(found):
        value = _value(scrape, name, begins)
        if value is not None:
            grown += growth(last.get(url, value), value) if scrape.t > anchor else 0.0
            last[url] = value
        if _is_leader(scrape):
            leader = url
            yield scrape.t, scrape.seq, None if value is None else grown, "the leader has no such metric"
        elif leader in ("", url):
            yield scrape.t, scrape.seq, None, _reason(scrape)


def _in_order(found: Mapping[str, list[Scrape]]) -> list[tuple[Scrape, str]]:
    return sorted(((s, url) for url, scrapes in found.items() for s in scrapes), key=lambda item: item[0].seq)


def _is_leader(scrape: Scrape) -> bool:
    return scrape.status == 200 and scrape.values.get(LEADER_STATUS, 1.0) == 1.0


def _value(scrape: Scrape, name: str, begins: bool) -> float | None:
    """Value of a metric; 0 if missing and ``begins`` (the counter appears with its first increment)."""
    return scrape.values.get(name, 0.0 if begins else None) if scrape.status == 200 else None


def _reason(scrape: Scrape) -> str:
    return "the replica does not lead" if scrape.status == 200 else "reading its metrics failed"
