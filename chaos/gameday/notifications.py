"""Receivers of notifications about a game day."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from chaos.core.document import Model
from chaos.core.field_types import HttpUrl, LabelName, Secret, without_query

Occasion = Literal["start", "entry", "violated", "halted", "end"]


class _MessageReceiver(Model):
    on: list[Occasion] = Field(["start", "violated", "halted", "end"], min_length=1)


class WebhookReceiver(_MessageReceiver):
    """JSON to a URL; with ``key``, signed by HMAC-SHA256."""

    kind: Literal["webhook"]
    url: HttpUrl
    key: Secret | None = None

    def __str__(self) -> str:
        return f"webhook {without_query(self.url)}"


class ChatReceiver(_MessageReceiver):
    """An incoming webhook of a chat. Its URL is a secret."""

    kind: Literal["slack", "teams"]
    url: Secret

    def __str__(self) -> str:
        return self.kind


class GrafanaReceiver(Model):
    """An annotation from the start to the end of each entry."""

    kind: Literal["grafana"]
    url: HttpUrl
    token: Secret
    tags: list[str] = ["nodefall"]

    def __str__(self) -> str:
        return f"grafana {without_query(self.url)}"


class AlertmanagerReceiver(Model):
    """A silence of alerts with these labels, from the start to the end of the day."""

    kind: Literal["alertmanager"]
    url: HttpUrl
    silence: dict[LabelName, str] = Field(min_length=1, description="labels of the alerts")
    token: Secret | None = Field(None, description="bearer token")

    def __str__(self) -> str:
        return f"alertmanager {without_query(self.url)}"


class MetricsReceiver(Model):
    """Verdicts and durations for Prometheus: to a Pushgateway, or into a directory of the node exporter."""

    kind: Literal["metrics"]
    pushgateway: HttpUrl | None = None
    directory: str | None = Field(None, min_length=1, description="of the textfile collector")
    token: Secret | None = Field(None, description="bearer token for the Pushgateway")

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.pushgateway is None) == (self.directory is None):
            raise ValueError("give exactly one of pushgateway or directory")
        return self

    def __str__(self) -> str:
        return f"metrics {without_query(self.pushgateway) if self.pushgateway else self.directory}"


Receiver = Annotated[
    WebhookReceiver | ChatReceiver | GrafanaReceiver | AlertmanagerReceiver | MetricsReceiver,
    Field(discriminator="kind"),
]
