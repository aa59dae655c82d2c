"""The port that every check implements, and what comes of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from chaos.preflight.observations import ClusterObservations, ExperimentNeeds, Need


class Severity(StrEnum):
    """``note``: worth knowing; ``warning``: may spoil what is seen; ``refusal``: stops the experiments it touches."""

    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    REFUSAL = "refusal"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What a check says of the cluster, or of ``host``. ``mend`` tells how to make it right.

    It touches experiments with one of ``needs``, and with a name in ``only`` (none of either: all), that might touch
    the host. ``unmet``: the cluster is not configured as an experiment requires; for others it may be.
    """

    severity: Severity
    message: str
    hint: str = ""
    host: str = ""
    needs: frozenset[Need] = frozenset()
    experiments: frozenset[str] = frozenset()
    unmet: bool = False

    def affects(self, use: ExperimentNeeds) -> bool:
        return (
            (not self.needs or bool(self.needs & use.needs))
            and (not self.experiments or use.name in self.experiments)
            and (not self.host or self.host in use.nodes)
        )


class Check(ABC):
    """One thing to look at before a fault. Pure.

    ``facts`` are read of each host for it. A refusal of a ``final`` check stands whatever ``--anyway`` says. One that
    is ``fit`` tells whether an experiment is made for this cluster: of the shipped ones those that are not only get a
    note.
    """

    name: str
    summary: str
    facts: tuple[str, ...] = ()
    is_final: bool = False
    is_compatibility_check: bool = False

    @abstractmethod
    def run(self, signs: ClusterObservations) -> Iterator[Diagnosis]:
        """What there is to say; also that something is in order."""


def ok(says: str, host: str = "") -> Diagnosis:
    """In order."""
    return Diagnosis(Severity.OK, says, host=host)


def note(says: str, mend: str = "", host: str = "", needs: frozenset[Need] = frozenset()) -> Diagnosis:
    """Worth knowing."""
    return Diagnosis(Severity.NOTE, says, mend, host, needs)


def warning(says: str, mend: str = "", host: str = "", needs: frozenset[Need] = frozenset()) -> Diagnosis:
    """What is seen may be due to this."""
    return Diagnosis(Severity.WARNING, says, mend, host, needs)


def refusal(says: str, mend: str = "", host: str = "", needs: frozenset[Need] = frozenset()) -> Diagnosis:
    """The experiments that it touches are not to be run."""
    return Diagnosis(Severity.REFUSAL, says, mend, host, needs)


def experiment_refusal(
    use: ExperimentNeeds, says: str, mend: str = "", host: str = "", *, unmet: bool = False
) -> Diagnosis:
    """One experiment is not to be run."""
    return Diagnosis(Severity.REFUSAL, says, mend, host, experiments=frozenset({use.name}), unmet=unmet)


def list_error_notes(signs: ClusterObservations, *paths: str) -> Iterator[Diagnosis]:
    """What could not be looked at."""
    for path in paths:
        if path in signs.list_errors:
            kind = path.rpartition("/")[2]
            yield note(f"{kind} could not be looked at: {signs.list_errors[path]}", f"grant the right to list {kind}")


class SourceCheck(Check):
    """Whether somebody whom experiments ask, beside the API server and hosts, answers; ``name`` is also theirs."""

    is_final = True

    def run(self, signs: ClusterObservations) -> Iterator[Diagnosis]:
        asking = [(use, use.source_errors[self.name]) for use in signs.experiments if self.name in use.source_errors]
        for use, why in asking:
            if why:
                yield experiment_refusal(use, f"{use.name}: {why[0]}", why[1])
        if asking and not any(why for _, why in asking):
            yield ok("it answers")
