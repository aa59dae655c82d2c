"""Gates of a game day: what must hold before the day, and before each entry."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, FiniteFloat, field_validator, model_validator

from chaos.core.document import DurationText, Model
from chaos.core.duration import parse_duration
from chaos.core.field_types import HttpUrl, LabelName, without_query

_MAX_TIMEOUT = 600.0  # seconds


class _Gate(Model):
    on_failure: Literal["skip", "wait", "stop"] = Field(
        "stop", alias="onFailure", description="skip the entry, wait until the gate holds, or stop the day"
    )
    wait: DurationText | None = Field(None, description="with onFailure: wait, how long; then the day stops")
    timeout: DurationText = Field("30s", description="a gate without an answer by then does not hold")

    @field_validator("timeout")
    @classmethod
    def _bounded(cls, text: str) -> str:
        if not 0.1 <= parse_duration(text) <= _MAX_TIMEOUT:
            raise ValueError(f"the timeout {text} is too short or too long; give from 100ms to 10m")
        return text

    @model_validator(mode="after")
    def _waits(self) -> Self:
        if (self.wait is None) != (self.on_failure != "wait"):
            raise ValueError("onFailure: wait needs wait, and wait needs onFailure: wait")
        return self


class DoctorGate(_Gate):
    """No check of preflight refuses the experiment."""

    kind: Literal["doctor"]

    def __str__(self) -> str:
        return "doctor refuses nothing"


class PrometheusGate(_Gate):
    """A query to the Prometheus of the inventory; every series of its result must be within the limits."""

    kind: Literal["prometheus"]
    query: str = Field(min_length=1, description="PromQL")
    at_least: FiniteFloat | None = Field(None, alias="atLeast")
    at_most: FiniteFloat | None = Field(None, alias="atMost")

    @model_validator(mode="after")
    def _limits(self) -> Self:
        if self.at_least is None and self.at_most is None:
            raise ValueError("give atLeast or atMost")
        if self.at_least is not None and self.at_most is not None and self.at_least > self.at_most:
            raise ValueError("atLeast is greater than atMost")
        return self

    def __str__(self) -> str:
        least = [f"at least {self.at_least:g}"] if self.at_least is not None else []
        most = [f"at most {self.at_most:g}"] if self.at_most is not None else []
        return f"{self.query} is {' and '.join(least + most)}"


class ErrorBudgetGate(_Gate):
    """The part of an error budget that is left, from 0 to 1, as a query to the Prometheus of the inventory."""

    kind: Literal["error-budget"]
    query: str = Field(min_length=1, description="PromQL: the part of the budget that is left, from 0 to 1")
    at_least: float = Field(alias="atLeast", ge=0, le=1)

    def __str__(self) -> str:
        return f"error budget: at least {self.at_least:.0%} left of {self.query}"


class HttpGate(_Gate):
    kind: Literal["http"]
    url: HttpUrl
    status: int = Field(200, ge=100, le=599)
    contains: str | None = Field(None, description="text that the body must contain")

    def __str__(self) -> str:
        return f"{without_query(self.url)} answers {self.status}" + (
            f" with {self.contains!r}" if self.contains else ""
        )


class AlertsGate(_Gate):
    """No alert with these labels fires, by the Prometheus of the inventory."""

    kind: Literal["no-alerts"]
    match_labels: dict[LabelName, str] = Field({}, alias="matchLabels", description="default: any alert")

    def __str__(self) -> str:
        labels = ", ".join(f"{name}={value}" for name, value in self.match_labels.items())
        return "no alert fires" + (f" with {labels}" if labels else "")


class OtherRunGate(_Gate):
    """No other run holds the lock of the cluster, and no run has a pending undo there."""

    kind: Literal["no-other-run"]

    def __str__(self) -> str:
        return "no other run on the cluster, and no pending undo"


class ApprovalGate(_Gate):
    """One of these persons has approved the plan of the day, named by its hash."""

    kind: Literal["approval"]
    by: list[Annotated[str, Field(min_length=1, max_length=100)]] = Field(min_length=1)

    def __str__(self) -> str:
        return f"approved by {' or '.join(self.by)}"


Gate = Annotated[
    DoctorGate | PrometheusGate | ErrorBudgetGate | HttpGate | AlertsGate | OtherRunGate | ApprovalGate,
    Field(discriminator="kind"),
]
