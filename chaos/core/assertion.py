"""The port that every assertion implements, the view of a run that it gets, and its claim in words for people.

Memos keep values that were computed from single objects for the next judgement of a run that is still being recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

from pydantic import BaseModel

from chaos.core.history import History
from chaos.core.recording import BlindWindow
from chaos.core.signal import SubjectSet
from chaos.core.timeline import Timeline

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Claim:
    """Two clauses in the past tense, without a time: the statement is true, and the statement is false.

    Each begins with an English word, ends without a full stop, and has at most about nine words: ``node worker-2 was
    Ready``, ``node worker-2 was not Ready``. A time like ``within 40 s`` follows.

    ``lost`` replaces ``fails`` if the statement became false later than at the start: ``Deployment web lost
    availability``. ``duty`` says what ``always`` demanded: ``it had to stay available``.
    """

    holds: str
    fails: str
    lost: str = ""
    duty: str = ""


@dataclass(frozen=True, slots=True)
class Noun:
    """Subject of a clause, like ``node worker-2``."""

    text: str
    is_plural: bool = False

    def __str__(self) -> str:
        return self.text

    @property
    def was(self) -> str:
        """``was`` or ``were``."""
        return "were" if self.is_plural else "was"

    def claim(self, holds: str, fails: str) -> Claim:
        """Claim of this subject, from the predicates."""
        return Claim(f"{self} {holds}", f"{self} {fails}")

    def is_(self, state: str, lost: str = "") -> Claim:
        """Claim that this subject was in a state, like ``Ready``. ``lost``: the predicate that it no longer was."""
        claim = self.claim(f"{self.was} {state}", f"{self.was} not {state}")
        duty = f"{'they' if self.is_plural else 'it'} had to stay {state}"
        return replace(claim, lost=f"{self} {lost}" if lost else "", duty=duty)


@dataclass(frozen=True, slots=True)
class Names:
    """Names for a claim.

    ``targets``: nodes by target, none if unknown. ``affected``: names of the subjects that violate the expectation, if
    it is violated. ``title``: the name that the experiment gives the expectation, or "".
    """

    targets: Mapping[str, Sequence[str]] = field(default_factory=dict)
    affected: Sequence[str] = ()
    title: str = ""

    def nodes(self, reference: str) -> Noun:
        """The nodes of a reference, or only the affected nodes: ``node worker-2``, ``3 nodes``.

        For an assertion whose subjects are nodes.
        """
        nodes = () if reference == "all" else self.targets.get(reference, (reference,))
        found = [name for name in self.affected if reference == "all" or name in nodes] or nodes
        if reference == "all" and not found:
            return Noun("all nodes", is_plural=True)
        if len(found) == 1:
            return Noun(f"node {found[0]}")
        return Noun(f"{len(found)} nodes", is_plural=True) if found else Noun(f"target {reference}")

    def on(self, reference: str | None) -> str:
        """Where something is, with a space before it: `` on worker-2``, `` on 3 nodes``, or "" for all nodes."""
        found = () if reference in (None, "all") else self.targets.get(reference or "", (reference,))
        if len(found) > 1:
            return f" on {len(found)} nodes"
        if found:
            return f" on {found[0]}"
        return "" if reference in (None, "all") else f" on target {reference}"

    def one_affected(self) -> str:
        """The affected subject without its namespace, "" unless there is exactly one."""
        return self.affected[0].rpartition("/")[2] if len(self.affected) == 1 else ""


def namespace_text(reference: str | None) -> str:
    """`` of the workload``, `` in namespace x`` or "": a run's own namespace has a name that says nothing."""
    if reference is None:
        return ""
    return " of the workload" if reference == "workload" else f" in namespace {reference}"


def format_seconds(seconds: float) -> str:
    """A time in two words: ``0.9 s``, ``40 s``, ``330 s``, ``5 min``, ``2 h``."""
    tenths = round(seconds, 1)
    if tenths >= 10:
        tenths = float(round(seconds))
    for unit, name in ((3600.0, "h"), (60.0, "min")):
        if tenths >= 2 * unit and not tenths % unit:
            return f"{tenths / unit:g} {name}"
    return f"{tenths:g} s"


class Memo:
    """Values that were made of one object each, for one question.

    A value is made again once its object has changed (a new version, or a narrower interval of one), once a blind
    window was recorded, or if ``state`` differs. It may depend on nothing else that changes.
    """

    def __init__(self) -> None:
        self._made: dict[History[Any], tuple[int, list[BlindWindow], tuple[object, ...], Any]] = {}
        self._lasting: Any = None

    def recall(self, timeline: Timeline, history: History[Any], make: Callable[[], T], *state: object) -> T:
        """The value that ``make`` computes from the history, cached until the history changes."""
        revision, windows, former, value = self._made.get(history, _NOTHING)
        now, present = history.revision, timeline.blind_windows  # before: what comes meanwhile may not be in the value
        if revision != now or windows is not present or former != state:
            value = make()
            self._made[history] = (now, present, state, value)
        made: T = value
        return made

    def keep(self, make: Callable[[], T]) -> T:
        """The object that ``make`` creates once. It must find out by itself what has changed."""
        if self._lasting is None:
            self._lasting = make()
        lasting: T = self._lasting
        return lasting


_NOTHING: tuple[int, list[BlindWindow], tuple[object, ...], Any] = (-1, [], (), None)


class Memos:
    """The memos of one run, by question. Those that a judgement did not use are forgotten after it."""

    def __init__(self) -> None:
        self._used: dict[Hashable, Memo] = {}
        self._former: dict[Hashable, Memo] = {}

    def begin_judgement(self) -> None:
        self._former, self._used = self._used, {}

    def of(self, question: Hashable) -> Memo:
        """The memo of a question, which has all that the values depend on, besides the timeline."""
        memo = self._used.get(question)
        if memo is None:
            memo = self._used[question] = self._former.get(question) or Memo()
        return memo


class Undecidable(Exception):
    """An assertion cannot be decided on this timeline, so the verdict is inconclusive, with this reason. ``remedy``:
    the evidence that would have decided it, if it differs from the assertion's ``needs``.
    """

    def __init__(self, why: str, remedy: str = "") -> None:
        super().__init__(why)
        self.remedy = remedy


class NotYetDecidable(Undecidable):
    """Raised where something has not happened, or was not received, yet: in a live run it may be later."""

    def __init__(self, why: str, remedy: str = "a timeline that has the step, or --map STEP=ACTION") -> None:
        super().__init__(why, remedy)


class NothingToJudge(Undecidable):
    """There are no subjects."""

    def __init__(self, why: str) -> None:
        super().__init__(why, "a selection with subjects, or a timeline that has them")


class View(Protocol):
    """View of one expectation on a timeline."""

    timeline: Timeline
    anchor: float  # start of the time that is judged: the start of a step, at which sets are formed
    since: tuple[float, float]  # between which moments the step took effect, from when on happenings are counted
    lookback: float  # seconds before ``anchor`` whose state will do, as later changes may not have been received yet

    def nodes(self, reference: str) -> tuple[str, ...]:
        """Names of the nodes of a target, of ``all``, or of a single node by its name. Raises Undecidable."""

    def namespace(self, reference: str) -> str:
        """Name of a namespace; ``workload`` is the namespace of the experiment's workload. Raises Undecidable."""

    def moment(self, reference: str) -> float:
        """Time at which a step began, or returned for ``end(step)``. Raises Undecidable."""

    def memo(self, *inputs: Hashable) -> Memo:
        """Values that the previous judgment computed from objects, the parameters, the anchor and ``inputs`` alone."""


class Assertion(Protocol):
    """A pure function of a timeline.

    ``params`` is the pydantic model (extra keys forbidden) of the experiment's ``with``; its ``node_fields`` refer to
    targets and its ``moment_fields`` to steps, which the loader checks. ``needs`` describes the data that a decision
    requires; an inconclusive verdict repeats it.
    """

    name: str
    summary: str
    example: str  # YAML of one expectation
    needs: str
    params: type[BaseModel]
    node_fields: tuple[str, ...]
    moment_fields: tuple[str, ...]

    def subjects(self, params: Any, view: View) -> SubjectSet:
        """Signals of the subjects. The judge makes them unknown where nothing was observed. Raises Undecidable."""


@runtime_checkable
class ClaimAssertion(Assertion, Protocol):
    """An assertion with words for people. Without such words, a sentence uses the name of the expectation or the
    summary.
    """

    def claim(self, params: Any, names: Names) -> Claim:
        """The claim without its time. ``params``: as for ``subjects``, which may have failed."""


@runtime_checkable
class NodeAssertion(Assertion, Protocol):
    """An assertion whose answer depends only on the nodes in its ``node_fields``, if a field is set. Foreign faults
    on other nodes do not affect its verdict.
    """

    only_named_nodes: bool


@runtime_checkable
class HostFactAssertion(Protocol):
    """An assertion that needs facts of the hosts of all targets, including targets without a step."""

    host_facts: tuple[str, ...]


@runtime_checkable
class WatchingAssertion(Protocol):
    """An assertion that names the resources it needs; their watches are proven current more often than others.

    Whatever could not be observed of them is unknown. If an assertion names no resources, it is assumed to need all
    of them.
    """

    sources: tuple[str, ...]


@runtime_checkable
class MaskingAssertion(Protocol):
    """An assertion that makes its signals unknown where nothing was observed by itself, for example by object."""

    masks_itself: Literal[True]


@runtime_checkable
class ControllerManagerAssertion(Assertion, Protocol):
    """An assertion that, with some parameters, needs the metrics of the controller-manager."""

    def uses_controller_manager(self, params: Any) -> bool: ...
