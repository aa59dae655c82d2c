"""The contract of preflight checks, and their diagnoses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TypedDict, Unpack

from chaos.core.blame import Hook, Kind
from chaos.engine.observations import ClusterObservations, ExperimentNeeds, HostObservations, Need

LINUX, WINDOWS = frozenset({"linux"}), frozenset({"windows"})  # for ``systems`` of a check


class Severity(StrEnum):
    """``note``: worth knowing; ``warning``: may distort observations; ``refusal``: blocks the affected experiments."""

    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    REFUSAL = "refusal"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Result of a check for the cluster, or for ``host``; ``hint`` is how to fix it.

    A diagnosis affects the experiments with one of ``needs`` and a name in ``experiments`` (an empty set: all) that may
    use the host. ``unmet``: the cluster lacks a requirement of the experiment; others may run.
    """

    severity: Severity
    message: str
    hint: str = ""
    host: str = ""
    needs: frozenset[Need] = frozenset()
    experiments: frozenset[str] = frozenset()
    unmet: bool = False

    def affects(self, experiment: ExperimentNeeds) -> bool:
        return (
            (not self.needs or bool(self.needs & experiment.needs))
            and (not self.experiments or experiment.name in self.experiments)
            and (not self.host or self.host in experiment.nodes)
        )


class Check(ABC):
    """A condition that must hold before a fault. Pure: a check reads collected data and sends nothing.

    :func:`check` and :func:`host_check` make a check from a function; it can also be a subclass. ``facts`` are read on
    each host for the check, which sees only the hosts with one of ``systems``. ``--anyway`` does not override a refusal
    of a check that ``is_final``. A check that ``is_compatibility_check`` decides whether an experiment suits the
    cluster: bundled experiments that do not suit it only get a note.
    """

    name: str
    summary: str
    facts: tuple[str, ...] = ()
    systems: frozenset[str] = LINUX | WINDOWS
    is_final: bool = False
    is_compatibility_check: bool = False

    @abstractmethod
    def run(self, observations: ClusterObservations) -> Iterator[Diagnosis]:
        """All diagnoses, including those that report success."""


def ok(message: str, host: str = "") -> Diagnosis:
    """A successful check."""
    return Diagnosis(Severity.OK, message, host=host)


def note(message: str, hint: str = "", host: str = "", needs: frozenset[Need] = frozenset()) -> Diagnosis:
    """A fact worth knowing."""
    return Diagnosis(Severity.NOTE, message, hint, host, needs)


def warning(message: str, hint: str = "", host: str = "", needs: frozenset[Need] = frozenset()) -> Diagnosis:
    """A possible cause of what the run will observe."""
    return Diagnosis(Severity.WARNING, message, hint, host, needs)


def refusal(message: str, hint: str = "", host: str = "", needs: frozenset[Need] = frozenset()) -> Diagnosis:
    """A reason not to run the affected experiments."""
    return Diagnosis(Severity.REFUSAL, message, hint, host, needs)


def experiment_refusal(
    experiment: ExperimentNeeds, message: str, hint: str = "", host: str = "", *, unmet: bool = False
) -> Diagnosis:
    """A reason not to run one experiment."""
    return Diagnosis(Severity.REFUSAL, message, hint, host, experiments=frozenset({experiment.name}), unmet=unmet)


def list_error_notes(observations: ClusterObservations, *paths: str) -> Iterator[Diagnosis]:
    """A note for each of ``paths`` that could not be listed."""
    for path in paths:
        if path in observations.list_errors:
            kind = path.rpartition("/")[2]
            yield note(
                f"{kind} could not be listed: {observations.list_errors[path]}", f"grant the permission to list {kind}"
            )


class CheckOptions(TypedDict, total=False):
    """The optional attributes of a :class:`Check` made from a function."""

    facts: tuple[str, ...]
    systems: frozenset[str]
    is_final: bool
    is_compatibility_check: bool


_Run = Callable[[ClusterObservations], Iterator[Diagnosis]]


class _DeclaredCheck(Check):
    """A check made from a function."""

    def __init__(self, name: str, summary: str, run: _Run, options: CheckOptions) -> None:
        self.name, self.summary, self._run = name, summary, run
        vars(self).update(options)

    def run(self, observations: ClusterObservations) -> Iterator[Diagnosis]:
        return self._run(observations)


def check(name: str, summary: str, **options: Unpack[CheckOptions]) -> Callable[[_Run], Check]:
    """Decorator: make a check from a function, which becomes :meth:`Check.run`."""
    return lambda run: _DeclaredCheck(name, summary, run, options)


def host_check(
    name: str, summary: str, **options: Unpack[CheckOptions]
) -> Callable[[Callable[[HostObservations], Diagnosis | None]], Check]:
    """Decorator: make a check from a function that diagnoses one reachable host, or returns None."""

    def declare(diagnose: Callable[[HostObservations], Diagnosis | None]) -> Check:
        def run(observations: ClusterObservations) -> Iterator[Diagnosis]:
            return (found for host in observations.reachable_hosts() if (found := diagnose(host)))

        return _DeclaredCheck(name, summary, run, options)

    return declare


def source_check(name: str, summary: str, **options: Unpack[CheckOptions]) -> Check:
    """A check of a data source of experiments, other than the API server and hosts; ``name`` is the source's."""

    def run(observations: ClusterObservations) -> Iterator[Diagnosis]:
        results = [
            (experiment, experiment.source_errors[name])
            for experiment in observations.experiments
            if name in experiment.source_errors
        ]
        for experiment, error in results:
            if error:
                yield experiment_refusal(experiment, f"{experiment.name}: {error[0]}", error[1])
        if results and not any(error for _, error in results):
            yield ok("it answers")

    return _DeclaredCheck(name, summary, run, {"is_final": True, **options})


KIND = Kind(
    "check",
    Check,
    lambda found, blame: blame.guard_methods(found, {"run": Hook(Iterable, items=Diagnosis, raises=())}),
)
