"""The port that every assertion implements, and what it may ask of a run."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from pydantic import BaseModel

from chaos.model.signal import SubjectSet
from chaos.model.timeline import Timeline


class Undecidable(Exception):
    """Raised by an assertion that cannot be answered from this timeline; the text says why (inconclusive).

    ``needs``: what would have answered it, where the assertion's own ``needs`` does not say it.
    """

    def __init__(self, why: str, remedy: str = "") -> None:
        super().__init__(why)
        self.remedy = remedy


class NothingToJudge(Undecidable):
    """Raised where the set of subjects is empty."""

    def __init__(self, why: str) -> None:
        super().__init__(why, "something to judge: another selection, or a timeline that has it")


class View(Protocol):
    """One expectation's view of a timeline."""

    timeline: Timeline
    anchor: float  # when judging starts

    def nodes(self, reference: str) -> tuple[str, ...]:
        """Names of the nodes of a target, of ``all``, or of one node by its own name. Raises Undecidable."""

    def namespace(self, reference: str) -> str:
        """The namespace; ``workload`` stands for the one the experiment's workload lives in. Raises Undecidable."""

    def moment(self, reference: str) -> float:
        """When a step began, or with ``end(step)`` returned. Raises Undecidable."""


class Assertion(Protocol):
    """A question asked of a timeline; a pure function of it.

    ``params`` is the pydantic model (extra keys forbidden) of the experiment's ``with``. In it, fields named in
    ``node_fields`` hold target references and those in ``moment_fields`` step references, which load checks.
    ``needs`` says what must be seen for an answer; an inconclusive verdict repeats it.
    """

    name: str
    summary: str
    example: str  # YAML of one expectation
    needs: str
    params: type[BaseModel]
    node_fields: tuple[str, ...]
    moment_fields: tuple[str, ...]

    def subjects(self, params: Any, view: View) -> SubjectSet:
        """Signals of the subjects, blind windows masked. Raises Undecidable."""


@runtime_checkable
class HostFactAssertion(Protocol):
    """An assertion that only hosts can answer: those of all targets are looked at, also where no step touches them."""

    host_facts: tuple[str, ...]


@runtime_checkable
class ControllerManagerAssertion(Assertion, Protocol):
    """An assertion that some parameters make a question about the metrics of the controller-manager."""

    def uses_controller_manager(self, params: Any) -> bool: ...
