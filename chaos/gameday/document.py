"""The GameDay document, nodefall.dev/v1alpha1, with its gates and the receivers of its notifications."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, FiniteFloat, StrictInt, field_validator, model_validator

from chaos.core.duration import parse_duration
from chaos.core.experiment import Expectation
from chaos.core.field_types import DurationText, HttpUrl, LabelName, Metadata, Model, Name, Secret, without_query
from chaos.gameday.time_rules import Schedule, Window

_MAX_TIMEOUT = 600.0  # seconds
Occasion = Literal["start", "entry", "violated", "halted", "end"]
MAX_RUNS = 500  # of one day: its state must fit into one object of the cluster
MAX_SEED = 2**32 - 1
OnViolated = Literal["stop", "continue"]


class _Gate(Model):
    on_failure: Literal["skip", "wait", "stop"] = Field(
        "stop", alias="onFailure", description="If the gate fails: skip the entry, wait for it, or stop the day."
    )
    wait: DurationText | None = Field(None, description="With onFailure: wait, how long to wait before the day stops.")
    timeout: DurationText = Field("30s", description="A gate that does not answer within this time fails.")

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

    kind: Literal["doctor"] = Field(description="The gate is open if no check of doctor fails.")

    def __str__(self) -> str:
        return "doctor refuses nothing"


class PrometheusGate(_Gate):
    """A query to the Prometheus of the inventory; every series of its result must be within the limits."""

    SOME_OF = ("atLeast", "atMost")

    kind: Literal["prometheus"] = Field(description="The gate is open if the value of a query is within bounds.")
    query: str = Field(min_length=1, description="The query, in PromQL.")
    at_least: FiniteFloat | None = Field(None, alias="atLeast", description="The least value.")
    at_most: FiniteFloat | None = Field(None, alias="atMost", description="The greatest value.")

    @model_validator(mode="after")
    def _limits(self) -> Self:
        if self.at_least is not None and self.at_most is not None and self.at_least > self.at_most:
            raise ValueError("atLeast is greater than atMost")
        return self

    def __str__(self) -> str:
        least = [f"at least {self.at_least:g}"] if self.at_least is not None else []
        most = [f"at most {self.at_most:g}"] if self.at_most is not None else []
        return f"{self.query} is {' and '.join(least + most)}"


class ErrorBudgetGate(_Gate):
    """The part of an error budget that is left, from 0 to 1, as a query to the Prometheus of the inventory."""

    kind: Literal["error-budget"] = Field(description="The gate is open if enough of an error budget is left.")
    query: str = Field(min_length=1, description="A PromQL query for the remaining error budget, from 0 to 1.")
    at_least: float = Field(
        alias="atLeast", ge=0, le=1, description="The share of the budget that must be left, from 0 to 1."
    )

    def __str__(self) -> str:
        return f"error budget: at least {self.at_least:.0%} left of {self.query}"


class HttpGate(_Gate):
    kind: Literal["http"] = Field(description="The gate is open if a URL answers with the status.")
    url: HttpUrl = Field(description="The URL to request.")
    status: int = Field(200, ge=100, le=599, description="The status that the URL must answer with.")
    contains: str | None = Field(None, description="A text that the body of the answer must contain.")

    def __str__(self) -> str:
        return f"{without_query(self.url)} answers {self.status}" + (
            f" with {self.contains!r}" if self.contains else ""
        )


class AlertsGate(_Gate):
    """No alert with these labels fires, by the Prometheus of the inventory."""

    kind: Literal["no-alerts"] = Field(description="The gate is open if no alert fires.")
    match_labels: dict[LabelName, str] = Field({}, alias="matchLabels", description="Labels of alerts. Default: any.")

    def __str__(self) -> str:
        labels = ", ".join(f"{name}={value}" for name, value in self.match_labels.items())
        return "no alert fires" + (f" with {labels}" if labels else "")


class OtherRunGate(_Gate):
    """No other run holds the lock of the cluster, and no run has a pending undo there."""

    kind: Literal["no-other-run"] = Field(description="The gate is open if no other run is in progress on the cluster.")

    def __str__(self) -> str:
        return "no other run on the cluster, and no pending undo"


class ApprovalGate(_Gate):
    """One of these persons has approved the plan of the day, named by its hash."""

    kind: Literal["approval"] = Field(description="The gate is open once somebody has approved the day.")
    by: list[Annotated[str, Field(min_length=1, max_length=100)]] = Field(
        min_length=1, description="Who may approve. Empty means anybody."
    )

    def __str__(self) -> str:
        return f"approved by {' or '.join(self.by)}"


Gate = Annotated[
    DoctorGate | PrometheusGate | ErrorBudgetGate | HttpGate | AlertsGate | OtherRunGate | ApprovalGate,
    Field(discriminator="kind"),
]


class _MessageReceiver(Model):
    on: list[Occasion] = Field(
        ["start", "violated", "halted", "end"], min_length=1, description="The events that are sent."
    )


class WebhookReceiver(_MessageReceiver):
    """JSON to a URL; with ``key``, signed by HMAC-SHA256."""

    kind: Literal["webhook"] = Field(description="A webhook that receives JSON.")
    url: HttpUrl = Field(description="The URL of the receiver.")
    key: Secret | None = Field(None, description="The key that signs each request.")

    def __str__(self) -> str:
        return f"webhook {without_query(self.url)}"


class ChatReceiver(_MessageReceiver):
    """An incoming webhook of a chat. Its URL is a secret."""

    kind: Literal["slack", "teams"] = Field(description="The chat service.")
    url: Secret = Field(description="The URL of the incoming webhook.")

    def __str__(self) -> str:
        return self.kind


class GrafanaReceiver(Model):
    """An annotation from the start to the end of each entry."""

    kind: Literal["grafana"] = Field(description="An annotation on Grafana dashboards.")
    url: HttpUrl = Field(description="The URL of Grafana.")
    token: Secret = Field(description="The token of a service account.")
    tags: list[str] = Field(["nodefall"], description="Tags of the annotation.")

    def __str__(self) -> str:
        return f"grafana {without_query(self.url)}"


class AlertmanagerReceiver(Model):
    """A silence of alerts with these labels, from the start to the end of the day."""

    kind: Literal["alertmanager"] = Field(description="A silence in Alertmanager while the day runs.")
    url: HttpUrl = Field(description="The URL of Alertmanager.")
    silence: dict[LabelName, str] = Field(min_length=1, description="The labels of the alerts.")
    token: Secret | None = Field(None, description="The bearer token.")

    def __str__(self) -> str:
        return f"alertmanager {without_query(self.url)}"


class MetricsReceiver(Model):
    """Verdicts and durations for Prometheus: to a Pushgateway, or into a directory of the node exporter."""

    ONE_OF = ("pushgateway", "directory")

    kind: Literal["metrics"] = Field(description="Metrics of the day.")
    pushgateway: HttpUrl | None = Field(None, description="The URL of a Pushgateway.")
    directory: str | None = Field(None, min_length=1, description="The directory of the textfile collector.")
    token: Secret | None = Field(None, description="The bearer token for the Pushgateway.")

    def __str__(self) -> str:
        return f"metrics {without_query(self.pushgateway) if self.pushgateway else self.directory}"


Receiver = Annotated[
    WebhookReceiver | ChatReceiver | GrafanaReceiver | AlertmanagerReceiver | MetricsReceiver,
    Field(discriminator="kind"),
]


class Pause(Model):
    """Between two entries: until the cluster has recovered, and for a while."""

    recovery: DurationText | None = Field(
        "10m",
        description="How long the next entry waits for the steady state of the last one. null: it does not wait.",
    )
    at_least: DurationText = Field("0s", alias="atLeast", description="The shortest pause.")


class GameDayCluster(Model):
    name: Name = Field(description="A name that entries refer to.")
    inventory: str = Field(min_length=1, description="The path of the file, relative to this file.")


class GameDayEntry(Model):
    """An experiment of the day. ``targets`` and ``with`` replace keys of the experiment's own."""

    name: Name | None = Field(None, description="The name of the entry. By default, the name of the experiment.")
    experiment: str = Field(min_length=1, description="The path of the file, relative to this file.")
    targets: dict[str, dict[str, Any]] = Field({}, description="Keys that replace the experiment's, by target.")
    with_: dict[str, dict[str, Any]] = Field(
        {}, alias="with", description="For each step, the parameters that replace the experiment's."
    )
    max_duration: DurationText | None = Field(
        None, alias="maxDuration", description="The maximum duration, instead of the one of the experiment."
    )
    repeat: StrictInt = Field(1, ge=1, le=100, description="How often the experiment runs.")
    seed: StrictInt | None = Field(
        None, ge=0, le=MAX_SEED, description="The seed of the first repetition; the others follow. Default: random."
    )
    clusters: list[Name] | None = Field(None, min_length=1, description="Where the entry runs. By default, everywhere.")
    on_violated: OnViolated | None = Field(None, alias="onViolated", description="Replaces onViolated of the day.")
    pause: Pause | None = Field(None, description="The pause after this entry. By default, the pause of the day.")
    gates: list[Gate] = Field(
        [], description="Gates that must be open before the entry, in addition to the gates of the day."
    )


class GameDaySpec(Model):
    title: str = Field(min_length=1, max_length=200, description="One sentence that lists and reports show.")
    owner: str = Field(min_length=1, max_length=200, description="The person or team that is responsible for the day.")
    clusters: list[GameDayCluster] = Field([], description="The clusters. By default, the one on the command line.")
    order: Literal["by-entry", "by-cluster"] = Field(
        "by-entry",
        description="by-entry: run each entry on all clusters before the next. by-cluster: finish each cluster first.",
    )
    parallel: StrictInt = Field(1, ge=1, le=100, description="How many clusters may be under test at the same time.")
    window: Window | None = Field(None, description="When experiments may start. By default, always.")
    schedule: Schedule | None = Field(None, description="When the day takes place. `nodefall gameday deploy` needs it.")
    gates: list[Gate] = Field([], description="Conditions that are checked before the day and before each entry.")
    abort: list[Expectation] = Field([], description="Conditions that end the day, judged also between entries.")
    on_violated: OnViolated = Field(
        "stop", alias="onViolated", description="Whether the day continues after an entry that is violated."
    )
    pause: Pause = Field(Pause(), description="The pause between two entries.")
    notify: list[Receiver] = Field([], description="Who is notified of the day.")
    entries: list[GameDayEntry] = Field(min_length=1, description="The experiments, in order.")

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        runs = sum(entry.repeat * len(entry.clusters or self.clusters or (None,)) for entry in self.entries)
        if runs > MAX_RUNS:
            raise ValueError(f"{runs} runs on one day: the limit is {MAX_RUNS}; split it into several game days")
        return self

    @model_validator(mode="after")
    def _parallel(self) -> Self:
        """Only different clusters are under test at once."""
        if self.parallel > max(len(self.clusters), 1):
            raise ValueError(f"parallel is {self.parallel}, but there are {len(self.clusters)} clusters")
        return self


class GameDay(Model):
    """A game day file."""

    api_version: Literal["nodefall.dev/v1alpha1"] = Field(alias="apiVersion", description="The version of this format.")
    kind: Literal["GameDay"] = Field(description="The kind of this document.")
    metadata: Metadata = Field(description="The name of the game day.")
    spec: GameDaySpec = Field(description="What runs, when it runs, and which gates must be open.")
