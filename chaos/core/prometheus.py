"""The Prometheus of an inventory: its address, what it is asked with, and how old its data may be."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from chaos.core.field_types import DurationText, Model, Secret, Url


class Prometheus(Model):
    """A Prometheus. Certificates are verified by the CAs of certifi, or those in ``REQUESTS_CA_BUNDLE``."""

    url: Url = Field(description="of its API, with a path prefix if it has one")
    user: str | None = Field(None, description="for basic authentication; credentials is the password")
    credentials: Secret | None = Field(None, description="bearer token, or the password of user")
    stale_after: DurationText = Field(
        "90s", alias="staleAfter", description="its data is unknown while its newest scrape is older"
    )

    @model_validator(mode="after")
    def _password(self) -> Self:
        if self.user and self.credentials is None:
            raise ValueError("user needs credentials")
        return self
