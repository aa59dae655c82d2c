"""Notes on times at which what an experiment asks about was not proven current."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from chaos.core.assertion import WatchingAssertion
from chaos.core.experiment import Experiment
from chaos.core.timeline import Timeline


def relevant_resources(experiment: Experiment) -> frozenset[str]:
    """The resources that the assertions of an experiment ask about; Nodes and Pods also prove steps."""
    assertions = [each.bound.assertion for each in experiment.spec.expectations if each.bound]
    found = (each.sources for each in assertions if isinstance(each, WatchingAssertion))
    return frozenset({"nodes", "pods"}.union(*found))


def currency_notes(experiment: Experiment, timeline: Timeline) -> Iterator[str]:
    """``pods were not proven current from 12:01:10 to 12:01:40 UTC``, one for each resource."""
    for source in sorted(relevant_resources(experiment)):
        windows = [(max(t, timeline.start), end) for t, end in timeline.currency.unproven(source, timeline.end)]
        if windows:
            spans = " and ".join(f"from {_clock_time(start)} to {_clock_time(end)}" for start, end in windows)
            yield f"{source} were not proven current {spans} UTC: when they changed in between is uncertain"


def _clock_time(t: float) -> str:
    return datetime.fromtimestamp(t, UTC).strftime("%H:%M:%S")
