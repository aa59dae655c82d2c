"""The Experiment document (design: nodefall.dev/v1alpha1)."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    field_validator,
    model_validator,
)

from chaos.model.bound import Bound, parse_bound
from chaos.model.duration import parse_duration

API_VERSION = "nodefall.dev/v1alpha1"


def _bound_text(value: str) -> str:
    parse_bound(value)
    return value


def _duration_text(value: str) -> str:
    parse_duration(value)
    return value


def _require_unit(value: Any) -> Any:
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise ValueError(f"{value} has no unit; write {value}s for seconds")  # noqa: TRY004 - pydantic wants it
    return value


NAME = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"
Name = Annotated[str, Field(pattern=NAME)]
BoundText = Annotated[
    str,
    BeforeValidator(_require_unit),
    AfterValidator(_bound_text),
    Field(examples=["kubelet.shutdownGracePeriod + 10s"]),
]
DurationText = Annotated[str, BeforeValidator(_require_unit), AfterValidator(_duration_text), Field(examples=["90s"])]


class Model(BaseModel):
    """Unknown keys are errors; keys are camelCase as written."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True, frozen=True)


class Metadata(Model):
    """``annotations``: what people and other programs want to know; nodefall itself does not look at them."""

    name: Name
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class TargetSpec(Model):
    """Which nodes a name stands for; chosen once, with a recorded seed. All given filters must match."""

    role: Literal["worker", "control-plane"] | None = None
    nodes: list[str] | None = Field(None, min_length=1)
    match_labels: dict[str, str] | None = Field(None, alias="matchLabels")
    zone: str | None = None
    os: Literal["linux", "windows"] | None = None
    count: int | str = Field(1, description="a number, or a percentage (rounded down, at least 1)")

    @field_validator("count", mode="before")
    @classmethod
    def _count(cls, value: Any) -> Any:
        text = str(value)[:20]
        number = text.removesuffix("%")
        fits = isinstance(value, int | str) and number.isascii() and number.isdigit() and int(number) >= 1
        if not fits or (text != number and int(number) > 100):
            raise ValueError(f"count must be a whole number from 1 or a percentage like 25%, not {text!r}")
        return value


class Workload(Model):
    """Manifests applied in a namespace of their own before the run and removed after it."""

    manifests: list[str] = Field(min_length=1)


def _endpoint_url(text: str) -> str:
    try:
        parts = urlsplit(text)
        fits = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        fits = False
    if not fits or any(c.isspace() for c in text):
        raise ValueError(f"{text!r} is no http or https URL")
    if "@" in parts.netloc:
        raise ValueError("a login is not written into a URL; probe a path that needs none")
    return text


def _endpoint(text: str) -> str:
    host, _, port = text.rpartition(":")
    if not host or any(c.isspace() or c in "/@" for c in host):
        raise ValueError(f"{text!r} is no endpoint; write HOST:PORT")
    if not port.isdigit():
        raise ValueError(f"{port!r} is no port; give its number")
    _port(port)
    return text


def _port(value: Any) -> str:
    text = str(value)
    number = int(text) if text.isascii() and text.isdigit() else 0
    if isinstance(value, bool) or not (1 <= number <= 65535 or re.fullmatch(r"[a-z0-9-]*[a-z][a-z0-9-]*", text)):
        raise ValueError(f"{text!r} is no port")
    return text


def _path(text: str) -> str:
    if not text.startswith("/") or any(c.isspace() for c in text):
        raise ValueError(f"{text!r} is no path; it begins with /")
    return text


def _at_least_minimum(text: str) -> str:
    if parse_duration(text) < _MIN_SECONDS:
        raise ValueError(f"{text} is too short; the least is {_MIN_SECONDS:g}s")
    return text


_MIN_SECONDS = 0.1
Seconds = Annotated[DurationText, AfterValidator(_at_least_minimum)]


class ServiceReference(Model):
    """A Service, asked through the API server: that needs the right to get services/proxy, and no route of our own."""

    name: Name
    namespace: str = "workload"
    port: Annotated[str, BeforeValidator(_port)] = Field("80", description="number or name")
    scheme: Literal["http", "https"] = "http"
    path: Annotated[str, AfterValidator(_path)] = "/"

    @property
    def proxy_name(self) -> str:
        """Its name in URLs of services/proxy, and so in rights."""
        return f"{'https:' if self.scheme == 'https' else ''}{self.name}:{self.port}"


class Probe(Model):
    """An endpoint that is asked through the whole run, as its clients would."""

    name: Name
    http: Annotated[str, AfterValidator(_endpoint_url)] | None = Field(None, description="URL; 200 to 399 is good")
    tcp: Annotated[str, AfterValidator(_endpoint)] | None = Field(
        None, description="HOST:PORT; a connection that is accepted is good"
    )
    service: ServiceReference | None = None
    every: Seconds = "1s"
    timeout: Seconds = "2s"

    def __str__(self) -> str:
        what = self.http or self.tcp or (f"Service {self.service.name}" if self.service else "")
        return f"{what}, every {self.every}"

    @model_validator(mode="after")
    def _one(self) -> Self:
        if sum(x is not None for x in (self.http, self.tcp, self.service)) != 1:
            raise ValueError("give exactly one of http, tcp or service")
        return self


class Query(Model):
    """A question to the Prometheus of the inventory: asked again and again, and over the whole run at its end."""

    name: Name
    query: str = Field(min_length=1, description="PromQL")
    every: Seconds = "5s"


class Until(Model):
    """The end of a never or always: the begin of a step, or a time after the anchor."""

    until: str | None = None
    for_: BoundText | None = Field(None, alias="for")

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.until is None) == (self.for_ is None):
            raise ValueError("give exactly one of until or for")
        return self


def _marker(value: Any) -> Any:
    return None if value is False else value


def _always_kind(value: Any) -> str:
    return "true" if value is True else "until"


class Expectation(Model):
    """One assertion with its time words, or the order of others."""

    name: str | None = None
    assert_: str | None = Field(None, alias="assert")
    with_: dict[str, Any] = Field({}, alias="with")
    after: str | None = Field(None, description="a step, end(step), or one of them + a duration")
    within: BoundText | None = None
    for_: BoundText | None = Field(None, alias="for", description="with within: how long it must stay true")
    never: Until | None = None
    always: Annotated[
        Annotated[
            Annotated[Until, Tag("until")] | Annotated[Literal[True], Tag("true")],
            Discriminator(_always_kind),
        ]
        | None,
        BeforeValidator(_marker),
    ] = None
    order: list[str] | None = Field(None, min_length=2, description="hypotheses that must come true in this order")

    @model_validator(mode="after")
    def _shape(self) -> Self:
        if (self.assert_ is None) == (self.order is None):
            raise ValueError("give exactly one of assert or order")
        words = [w for w in ("within", "never", "always") if getattr(self, w) is not None]
        if len(words) > 1:
            raise ValueError(f"{' and '.join(words)} exclude each other")
        if self.for_ is not None and self.within is None:
            raise ValueError("for needs within; with never or always write {for: ...} below it")
        if self.order is not None and (words or self.with_ or self.after):
            raise ValueError("order stands alone: the named hypotheses have their own time words")
        return self

    @property
    def title(self) -> str:
        """The name, or what is asked."""
        return self.name or self.assert_ or "order of " + ", ".join(self.order or ())


class Step(Model):
    """One action on one target. ``after`` defaults to the return of the step before."""

    name: Name
    action: str
    target: str = Field("", description="left out where the action is not about a node")
    with_: dict[str, Any] = Field({}, alias="with")
    after: str | None = Field(None, description="a step (its begin), end(step), either + a duration, or a duration")


class Recovery(Model):
    within: DurationText


class Spec(Model):
    title: str
    requires: dict[str, dict[str, str]] = Field({}, description='facts that must hold, as {kubelet: {x: ">0"}}')
    allow: list[Literal["irreversible"]] = []
    workload: Workload | None = None
    targets: dict[str, TargetSpec] = {}
    probes: list[Probe] = []
    queries: list[Query] = []
    steady_state: list[Expectation] = Field(alias="steadyState", min_length=1)
    method: list[Step] = Field(min_length=1)
    hypothesis: list[Expectation] = Field(min_length=1)
    abort: list[Expectation] = []
    recovery: Recovery | None = None
    max_duration: DurationText = Field("15m", alias="maxDuration")


class Experiment(Model):
    """One experiment file."""

    api_version: Literal["nodefall.dev/v1alpha1"] = Field(alias="apiVersion")
    kind: Literal["Experiment"]
    metadata: Metadata
    spec: Spec


class Moment(Model):
    """A parsed ``after``: begin or return of ``step`` (the anchor if empty) plus ``offset`` seconds."""

    step: str
    is_end: bool
    offset: float


def parse_moment(text: str) -> Moment:
    """``power-off``, ``end(power-off)``, ``power-off + 90s`` or ``90s``. Raises ValueError."""
    head, plus, tail = text.partition(" + ")
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
        raise ValueError(f"{text!r} is not a moment; write it like STEP, end(STEP) or STEP + 90s")
    return Moment(step=head, is_end=False, offset=offset)


def bound(text: str) -> Bound:
    """The parsed form of a validated :data:`BoundText`."""
    return parse_bound(text)
