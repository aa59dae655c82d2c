"""The Experiment document, nodefall.dev/v1alpha1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import (
    BeforeValidator,
    Discriminator,
    Field,
    PrivateAttr,
    Tag,
    model_validator,
)

from chaos.core.duration import Bound, parse_bound, parse_duration
from chaos.core.field_types import BoundText, DurationText, HttpUrl, Metadata, Model, Name
from chaos.core.json_schema import AlsoAccepts
from chaos.core.number_types import Factor, VersionRange
from chaos.core.probes import Probe, Query
from chaos.core.target_spec import TargetSpec

if TYPE_CHECKING:
    from chaos.core.binding import BoundAssertion, BoundStep
else:  # what a step is bound to is no public type
    BoundAssertion = BoundStep = Any

Timing = Annotated[
    Literal["strict", "loose"],
    Field(
        description="loose: the deadline depends on the speed of the machines, so the inventory's slack multiplies it."
    ),
]


OPERATORS = ("within", "never", "always")  # the temporal ones; an expectation has at most one


class Workload(Model):
    """Manifests, applied in a dedicated namespace before the run and removed after it."""

    manifests: list[str] = Field(min_length=1, description="Manifest files, relative to the experiment.")


class Until(Model):
    """End of a never or always: the start of a step, or a duration after the anchor."""

    ONE_OF = ("until", "for")

    until: str | None = Field(None, description="The period ends when this step begins.")
    for_: BoundText | None = Field(None, alias="for", description="The length of the period, counted from `after`.")


class KnownDeviation(Model):
    """Where Kubernetes is known not to do what its documentation says."""

    versions: VersionRange = Field(
        description="The versions of the API server, such as >=v1.32, <v1.36.", examples=[">=v1.32"]
    )
    issue: HttpUrl = Field(description="The URL of the upstream issue.")
    instead: str = Field(min_length=1, description="What happens instead.")


def _marker(value: Any) -> Any:
    return None if value is False else value


def _always_kind(value: Any) -> str:
    return "true" if value is True else "until"


class Expectation(Model):
    """One assertion with temporal operators, or an order of other expectations."""

    ONE_OF = ("assert", "order")

    name: str | None = Field(
        None, description="A sentence for reports. By default, nodefall writes one from the assertion."
    )
    assert_: str | None = Field(
        None, alias="assert", description="The assertion to check. `nodefall list assertions` shows them."
    )
    with_: dict[str, Any] = Field({}, alias="with", description="Parameters. `nodefall explain NAME` describes them.")
    after: str | None = Field(None, description="The start: a step, end(step), or either plus a duration.")
    within: BoundText | None = Field(
        None, description="The assertion must be true at some moment before this deadline, which counts from `after`."
    )
    for_: BoundText | None = Field(
        None, alias="for", description="How long the assertion must stay true. It needs `within`."
    )
    never: Until | None = Field(None, description="The assertion must not be true at any moment before this end.")
    always: Annotated[
        Annotated[
            Annotated[Until, Tag("until")] | Annotated[Literal[True], Tag("true")],
            Discriminator(_always_kind),
        ]
        | None,
        BeforeValidator(_marker),
        AlsoAccepts({"const": False}),
    ] = Field(
        None,
        description="The assertion must be true at every moment before this end; true means the end of the run.",
    )
    timing: Timing = "strict"
    baseline: Factor | None = Field(
        None,
        description="The deadline is at least this many times the slowest pod start of the workload.",
    )
    order: list[str] | None = Field(None, min_length=2, description="Hypotheses that must come true in this order.")
    known: KnownDeviation | None = Field(
        None, description="Versions that are known to violate the expectation. The run then does not count as violated."
    )
    _bound: BoundAssertion | None = PrivateAttr(None)

    @model_validator(mode="after")
    def _shape(self) -> Self:
        operators = [w for w in OPERATORS if getattr(self, w) is not None]
        if len(operators) > 1:
            raise ValueError(f"{' and '.join(operators)} exclude each other")
        if self.for_ is not None and self.within is None:
            raise ValueError("for needs within; with never or always write {for: ...} below it")
        self._check_timing()
        if self.order is not None and (operators or self.with_ or self.after):
            raise ValueError("order excludes other keys: the hypotheses that it lists have their own")
        return self

    def continuous(self) -> Self:
        """The expectation as an abort condition, which is judged continuously, even without ``always: true``."""
        return self if self.always else self.model_copy(update={"always": True})

    def _check_timing(self) -> None:
        if self.baseline is not None and self.within is None:
            raise ValueError("baseline needs within: only a deadline may be later on slow machines")
        if self.timing == "loose" and self.within is None:
            raise ValueError("timing: loose needs within: only a deadline may be later on slow machines")
        if self.timing == "loose" and self.within is not None and not parse_bound(self.within).has_durations:
            raise ValueError(f"timing: loose has no effect on {self.within!r}: slack multiplies no facts; add + 10s")

    @property
    def bound(self) -> BoundAssertion | None:
        """The assertion with its parameters; None for an order, and for an assertion that is not known here."""
        return self._bound

    def bind(self, bound: BoundAssertion) -> None:
        """See :meth:`chaos.core.registry.PluginRegistry.bind`."""
        self._bound = bound

    @property
    def title(self) -> str:
        """The name, else the assertion or the order."""
        return self.name or self.assert_ or "order of " + ", ".join(self.order or ())


class Step(Model):
    """One action on one target. ``after`` defaults to the return of the previous step."""

    name: Name = Field(description="A name that expectations and later steps refer to.")
    action: str = Field(description="The action to run. `nodefall list actions` shows them.")
    target: str = Field("", description="The target of the step. Leave it out for an action without a node.")
    with_: dict[str, Any] = Field({}, alias="with", description="Parameters. `nodefall explain NAME` describes them.")
    after: str | None = Field(
        None,
        description="When the step starts: at a step, at end(step), at either plus a duration, or after a duration.",
    )
    _bound: BoundStep | None = PrivateAttr(None)

    @property
    def bound(self) -> BoundStep:
        """The action with its parameters. Raises RuntimeError before the experiment is bound."""
        if self._bound is None:
            raise RuntimeError(f"step {self.name} is not bound to its action")
        return self._bound

    @property
    def is_bound(self) -> bool:
        """Whether the action is known here, and the parameters are valid."""
        return self._bound is not None

    def bind(self, bound: BoundStep) -> None:
        """See :meth:`chaos.core.registry.PluginRegistry.bind`."""
        self._bound = bound


class Recovery(Model):
    within: DurationText = Field(description="A duration, counted from the return or the undo of the last step.")
    timing: Timing = "strict"


class Spec(Model):
    title: str = Field(description="One sentence that lists and reports show.")
    description: str = Field("", description="What the experiment proves if everything holds, in a sentence or two.")
    kubernetes: VersionRange | None = Field(
        None, description="The versions for which the experiment is true, such as >=v1.32. Others are refused."
    )
    requires: dict[str, dict[str, str]] = Field(
        {}, description='Facts that the nodes must have, such as {kubelet: {x: ">0"}}.'
    )
    allow: list[Literal["custom", "irreversible", "ungraceful"]] = Field(
        [],
        description="ungraceful: also accept nodes whose shutdown is not graceful, because the experiment tests that.",
    )
    workload: Workload | None = Field(
        None, description="Objects that nodefall creates for the run in a separate namespace, and removes after it."
    )
    targets: dict[str, TargetSpec] = Field(
        {}, description="Named sets of nodes. Steps and expectations refer to them. A node belongs to one set only."
    )
    probes: list[Probe] = Field([], description="Endpoints that nodefall requests again and again during the run.")
    queries: list[Query] = Field(
        [], description="Prometheus queries that nodefall sends again and again during the run."
    )
    steady_state: list[Expectation] = Field(
        alias="steadyState",
        min_length=1,
        description="What must be true before the first step, else nodefall refuses the run.",
    )
    method: list[Step] = Field(min_length=1, description="The steps, in order.")
    hypothesis: list[Expectation] = Field(
        min_length=1, description="The expectations. The verdict of the run is about them."
    )
    abort: list[Expectation] = Field(
        [],
        description="Conditions that must stay true. If one is false, nodefall stops and undoes the run.",
    )
    recovery: Recovery | None = Field(
        None, description="How soon the steady state must be back after the last step and its undo."
    )
    max_duration: DurationText = Field(
        "15m",
        alias="maxDuration",
        description="How long the run may take. After that, nodefall stops it and undoes its steps.",
    )

    @property
    def expectations(self) -> list[Expectation]:
        """The expectations of steady state, hypothesis and abort."""
        return [*self.steady_state, *self.hypothesis, *self.abort]


class Experiment(Model):
    """An experiment file."""

    api_version: Literal["nodefall.dev/v1alpha1"] = Field(alias="apiVersion", description="The version of this format.")
    kind: Literal["Experiment"] = Field(description="The kind of this document.")
    metadata: Metadata = Field(description="The name and labels of the experiment.")
    spec: Spec = Field(description="What fails, and what the cluster must do.")


class Moment(Model):
    """A parsed ``after``: begin or end of ``step`` (the anchor if empty) plus ``offset`` seconds."""

    step: str
    is_end: bool
    offset: float


def parse_moment(text: str) -> Moment:
    """``power-off``, ``end(power-off)``, ``power-off + 90s`` or ``90s``. Raises ValueError."""
    head, plus, tail = text.partition("+")
    if plus:
        offset = parse_duration(tail.strip())
    elif head[:1].isdigit() and not head.startswith("end("):
        try:
            return Moment(step="", is_end=True, offset=parse_duration(head.strip()))
        except ValueError:
            offset = 0.0  # a step whose name begins with a digit
    else:
        offset = 0.0
    head = head.strip()
    if head.startswith("end(") and head.endswith(")"):
        return Moment(step=head[4:-1].strip(), is_end=True, offset=offset)
    if not head or any(c in head for c in " +()"):
        raise ValueError(f"invalid moment {text!r}; write it like STEP, end(STEP) or STEP + 90s")
    return Moment(step=head, is_end=False, offset=offset)


def moment_of(step: Step) -> Moment:
    """The parsed ``after`` of a step. By default, the return of the previous step."""
    return parse_moment(step.after) if step.after else Moment(step="", is_end=True, offset=0.0)


def bound(text: str) -> Bound:
    """The parsed form of a validated :data:`BoundText`."""
    return parse_bound(text)
