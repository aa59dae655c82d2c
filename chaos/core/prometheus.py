"""The Prometheus of an inventory: its address, what it is asked with, and how old its data may be."""

from __future__ import annotations

import re
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, model_validator

from chaos.core.field_types import DurationText, Flag, HttpUrl, Model, Secret, full_match

_SECRET_HEADER = re.compile("auth|cookie|token|key|secret|password", re.IGNORECASE)
_OWN_HEADERS = ("host", "content-length", "transfer-encoding", "connection")
HeaderName = Annotated[str, full_match(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", "is not a name of a header")]


def _header_text(value: Any) -> Any:
    """A text that may be in a header; a reference to a secret as it is."""
    if isinstance(value, str) and not value.isprintable():
        raise ValueError("a header has no line breaks and other control characters")
    return value


HeaderValue = Annotated[str | Secret, BeforeValidator(_header_text)]


class Prometheus(Model):
    """A Prometheus, or a server with the same API. Proxies come from the environment."""

    url: HttpUrl = Field(description="The URL of its API, with a path prefix if it has one.")
    user: str | None = Field(None, description="The user for basic authentication. credentials is the password.")
    credentials: Secret | None = Field(None, description="The bearer token, or the password of user.")
    headers: dict[HeaderName, HeaderValue] = Field(
        {},
        description="More headers for each request, such as X-Scope-OrgID. Refer to secrets; do not write them here.",
    )
    ca: str | None = Field(
        None, description="The file with the CA. By default, REQUESTS_CA_BUNDLE or the CAs of certifi."
    )
    client_certificate: str | None = Field(None, alias="clientCertificate", description="A file in PEM.")
    client_key: str | None = Field(None, alias="clientKey", description="A file in PEM.")
    insecure_skip_verify: Flag = Field(
        False, alias="insecureSkipVerify", description="Do not verify the certificate. doctor warns about this."
    )
    freshness: str | None = Field(
        None,
        min_length=1,
        description="The query for the time of the newest sample, in seconds since 1970. By default, "
        "max(timestamp(up)), or if there is no up, the timestamps of the queried metrics.",
    )
    stale_after: DurationText = Field(
        "90s", alias="staleAfter", description="Data counts as unknown while the newest sample is older than this."
    )

    @property
    def risks(self) -> tuple[str, ...]:
        """Weaknesses of the connection, for people."""
        if not self.insecure_skip_verify:
            return ()
        return ("the certificate of Prometheus is not verified (insecureSkipVerify in the inventory)",)

    @model_validator(mode="after")
    def _pairs(self) -> Self:
        if self.user and self.credentials is None:
            raise ValueError("user needs credentials")
        if bool(self.client_certificate) != bool(self.client_key):
            raise ValueError("give both clientCertificate and clientKey, or neither")
        if self.insecure_skip_verify and self.ca:
            raise ValueError("give either ca or insecureSkipVerify")
        for name, value in self.headers.items():
            if name.lower() in _OWN_HEADERS:
                raise ValueError(f"the header {name} cannot be set")
            if name.lower() == "authorization" and self.credentials:
                raise ValueError("give either credentials or the header Authorization")
            if isinstance(value, str) and _SECRET_HEADER.search(name):
                raise ValueError(f"the header {name} may be a secret; refer to it: {{env: NAME}} or {{file: PATH}}")
        return self
