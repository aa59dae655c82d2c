"""The Fleet document, nodefall.dev/v1alpha1."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StrictInt, model_validator

from chaos.core.field_types import DurationText, Metadata, Model, Name

MAX_CLUSTERS = 100
MAX_FLEET_NAME = 39  # its Jobs are named after it
DAY_SUFFIX = ".fleet"  # no game day can have a name with a dot
IMAGE = r"^[A-Za-z0-9][A-Za-z0-9._:/@-]*$"
NAMESPACE = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"
OBJECT_NAME = r"^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$"
REPORT_URL = r"^https?://[^\s?#]+$"
SIZE = r"^[1-9][0-9]*(Ki|Mi|Gi|Ti|k|M|G|T)$"
OnViolatedFleet = Literal["stop", "halt", "continue"]
ImageText = Annotated[
    str, Field(pattern=IMAGE, description="The image, built from deploy/image/Dockerfile and named by its digest.")
]
NamespaceText = Annotated[
    str, Field(pattern=NAMESPACE, description="The namespace of the Job and the objects that it needs.")
]


class FleetStorage(Model):
    """The volume for the reports of a cluster."""

    size: str = Field("1Gi", pattern=SIZE, description="The size, as a quantity such as 1Gi.")
    class_name: str | None = Field(
        None,
        alias="class",
        pattern=OBJECT_NAME,
        description="The storage class. By default, the default class of the cluster.",
    )


class FleetCluster(Model):
    """A cluster of the fleet. Keys that are missing are those of the fleet."""

    name: Name = Field(description="A name that reports and commands refer to.")
    inventory: str = Field(min_length=1, description="The path of the file, relative to this file.")
    kubeconfig: str | None = Field(
        None,
        min_length=1,
        description="The kubeconfig with which this command reaches the cluster. Default: the inventory's.",
    )
    context: str | None = Field(
        None, min_length=1, description="The context of that kubeconfig. Default: the inventory's."
    )
    image: ImageText | None = Field(None, description="Replaces the setting of the fleet for this cluster.")
    namespace: NamespaceText | None = Field(None, description="Replaces the setting of the fleet for this cluster.")
    secret: str | None = Field(
        None, pattern=OBJECT_NAME, description="Replaces the setting of the fleet for this cluster."
    )
    storage: FleetStorage | None = Field(None, description="Replaces the setting of the fleet for this cluster.")
    report_url: Annotated[str, Field(pattern=REPORT_URL)] | None = Field(
        None,
        alias="reportURL",
        description="Where people find the reports of the Job, for links in notifications. Without it they have none.",
    )


class FleetSpec(Model):
    gameday: str = Field(min_length=1, description="The path of the file, relative to this file.")
    image: ImageText
    namespace: NamespaceText = "nodefall"
    secret: str | None = Field(
        None,
        pattern=OBJECT_NAME,
        description="The name of the Secret with keys and passwords. The default is nodefall-GAMEDAY.",
    )
    storage: FleetStorage = Field(FleetStorage(), description="Storage for the reports of the Jobs.")
    max_clusters: StrictInt = Field(
        1,
        alias="maxClusters",
        ge=1,
        le=MAX_CLUSTERS,
        description="How many clusters may be under test at the same time.",
    )
    on_violated: OnViolatedFleet = Field(
        "stop",
        alias="onViolated",
        description="stop: no further cluster starts. halt: clusters under test are undone, too. continue: neither.",
    )
    patience: DurationText = Field(
        "10m", description="How long to wait for a cluster that cannot be read, or whose pod does not start."
    )
    home: Name | None = Field(
        None, description="The cluster that stores the fleet's progress and its lock. By default, the first one."
    )
    clusters: list[FleetCluster] = Field(
        min_length=1, max_length=MAX_CLUSTERS, description="The clusters on which the game day runs, in order."
    )

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if self.max_clusters > len(self.clusters):
            raise ValueError(f"maxClusters is {self.max_clusters}, but there are {len(self.clusters)} clusters")
        return self

    @property
    def home_name(self) -> str:
        """The cluster with the fleet's own state."""
        return self.home or self.clusters[0].name


class Fleet(Model):
    """A fleet file."""

    api_version: Literal["nodefall.dev/v1alpha1"] = Field(alias="apiVersion", description="The version of this format.")
    kind: Literal["Fleet"] = Field(description="The kind of this document.")
    metadata: Metadata = Field(description="The name of the fleet.")
    spec: FleetSpec = Field(description="The clusters, and how many run at a time.")

    @model_validator(mode="after")
    def _short_name(self) -> Self:
        if len(self.metadata.name) > MAX_FLEET_NAME:
            raise ValueError(f"the name of a fleet has at most {MAX_FLEET_NAME} characters")
        return self
