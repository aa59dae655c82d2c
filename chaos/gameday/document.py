"""The GameDay document, nodefall.dev/v1alpha1."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, StrictInt, model_validator

from chaos.core.document import DurationText, Metadata, Model, Name
from chaos.core.experiment import Expectation
from chaos.gameday.gates import Gate
from chaos.gameday.notifications import Receiver
from chaos.gameday.time_rules import Schedule, Window

MAX_RUNS = 500  # of one day: its state must fit into one object of the cluster
MAX_SEED = 2**32 - 1
OnViolated = Literal["stop", "continue"]


class Pause(Model):
    """Between two entries: until the cluster has recovered, and for a while."""

    recovery: DurationText | None = Field(
        "10m",
        description="the next entry waits at most this long for the steady state of the last one; null: not at all",
    )
    at_least: DurationText = Field("0s", alias="atLeast")


class GameDayCluster(Model):
    name: Name
    inventory: str = Field(min_length=1, description="file, relative to this one")


class GameDayEntry(Model):
    """An experiment of the day. ``targets`` and ``with`` replace keys of the experiment's own."""

    name: Name | None = Field(None, description="default: the name of the experiment")
    experiment: str = Field(min_length=1, description="file, relative to this one")
    targets: dict[str, dict[str, Any]] = Field({}, description="by target: keys that replace those of the experiment")
    with_: dict[str, dict[str, Any]] = Field(
        {}, alias="with", description="by step: parameters that replace those of the experiment"
    )
    max_duration: DurationText | None = Field(None, alias="maxDuration")
    repeat: StrictInt = Field(1, ge=1, le=100)
    seed: StrictInt | None = Field(
        None, ge=0, le=MAX_SEED, description="of the first repetition, each further one has the next; default: drawn"
    )
    clusters: list[Name] | None = Field(None, min_length=1, description="default: all")
    on_violated: OnViolated | None = Field(None, alias="onViolated", description="default: that of the day")
    pause: Pause | None = Field(None, description="after this entry; default: that of the day")
    gates: list[Gate] = []


class GameDaySpec(Model):
    title: str = Field(min_length=1, max_length=200)
    owner: str = Field(min_length=1, max_length=200, description="the person or team that answers for it")
    clusters: list[GameDayCluster] = Field([], description="default: that of the inventory on the command line")
    order: Literal["by-entry", "by-cluster"] = Field(
        "by-entry", description="by-entry: each entry on all clusters before the next; by-cluster: one cluster wholly"
    )
    parallel: StrictInt = Field(1, ge=1, le=100, description="clusters that may be under test at once")
    window: Window | None = Field(None, description="default: always open")
    schedule: Schedule | None = None
    gates: list[Gate] = Field([], description="before the day, and before each entry")
    abort: list[Expectation] = Field([], description="judged during the whole day, also between entries")
    on_violated: OnViolated = Field("stop", alias="onViolated")
    pause: Pause = Pause()
    notify: list[Receiver] = []
    entries: list[GameDayEntry] = Field(min_length=1)

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        runs = sum(entry.repeat * len(entry.clusters or self.clusters or (None,)) for entry in self.entries)
        if runs > MAX_RUNS:
            raise ValueError(f"{runs} runs on one day: the limit is {MAX_RUNS}; make it several game days")
        return self

    @model_validator(mode="after")
    def _parallel(self) -> Self:
        """Only different clusters are under test at once."""
        if self.parallel > max(len(self.clusters), 1):
            raise ValueError(f"parallel is {self.parallel}, but there are {len(self.clusters)} clusters")
        return self


class GameDay(Model):
    """A game day file."""

    api_version: Literal["nodefall.dev/v1alpha1"] = Field(alias="apiVersion")
    kind: Literal["GameDay"]
    metadata: Metadata
    spec: GameDaySpec
