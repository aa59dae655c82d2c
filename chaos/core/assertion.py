"""The port that every assertion implements, and its view of a run."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Protocol, runtime_checkable

from pydantic import BaseModel

from chaos.core.claim import Claim, Names
from chaos.core.memo import Memo
from chaos.core.signal import SubjectSet
from chaos.core.timeline import Timeline


class Undecidable(Exception):
    """An assertion cannot be decided on this timeline: the verdict is inconclusive, with this reason.

    ``remedy``: what would have decided it, if that is not the assertion's ``needs``.
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
    anchor: float  # start of the time that is judged
    lookback: float  # seconds before ``anchor`` whose state will do, as later changes may not have been received yet

    def nodes(self, reference: str) -> tuple[str, ...]:
        """Names of the nodes of a target, of ``all``, or of a single node by its name. Raises Undecidable."""

    def namespace(self, reference: str) -> str:
        """Name of a namespace; ``workload`` is the namespace of the experiment's workload. Raises Undecidable."""

    def moment(self, reference: str) -> float:
        """Time at which a step began, or returned for ``end(step)``. Raises Undecidable."""

    def memo(self, *inputs: Hashable) -> Memo:
        """What the judgement before has made of objects, from the parameters, the anchor and ``inputs`` alone."""


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
        """Signals of the subjects, unknown within blind windows. Raises Undecidable."""


@runtime_checkable
class ClaimAssertion(Assertion, Protocol):
    """An assertion with words for people. Without them, a sentence is made of the expectation's name or the summary."""

    def claim(self, params: Any, names: Names) -> Claim:
        """What is stated, without its time. ``params``: as for ``subjects``, which may have failed."""


@runtime_checkable
class NodeAssertion(Assertion, Protocol):
    """An assertion whose answer depends on no other nodes than those in its ``node_fields``, if any is set.

    Changes of other nodes by someone else (foreign faults) leave its verdict standing.
    """

    only_named_nodes: bool


@runtime_checkable
class HostFactAssertion(Protocol):
    """An assertion that needs facts of the hosts of all targets, also of those without a step."""

    host_facts: tuple[str, ...]


@runtime_checkable
class WatchingAssertion(Protocol):
    """An assertion that names the resources it needs; their watches are proven current more often than others."""

    sources: tuple[str, ...]


@runtime_checkable
class ControllerManagerAssertion(Assertion, Protocol):
    """An assertion that, with some parameters, needs the metrics of the controller-manager."""

    def uses_controller_manager(self, params: Any) -> bool: ...
