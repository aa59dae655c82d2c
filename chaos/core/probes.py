"""Probes of endpoints, and queries to Prometheus, as an experiment declares them."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field

from chaos.core.duration import parse_duration
from chaos.core.field_types import DurationText, Model, Name
from chaos.core.json_schema import AlsoAccepts, matching
from chaos.core.kube_names import Namespace


def _endpoint_url(text: str) -> str:
    try:
        parts = urlsplit(text)
        is_valid = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        is_valid = False
    if not is_valid or any(c.isspace() for c in text):
        raise ValueError(f"invalid URL {text!r}: expected http or https")
    if "@" in parts.netloc:
        raise ValueError("credentials are not allowed in a URL; probe a path without authentication")
    return text


def _endpoint(text: str) -> str:
    host, _, port = text.rpartition(":")
    if not host or any(c.isspace() or c in "/@" for c in host):
        raise ValueError(f"invalid endpoint {text!r}; write HOST:PORT")
    if not port.isdigit():
        raise ValueError(f"invalid port {port!r}; write a number")
    _port(port)
    return text


def _port(value: Any) -> str:
    text = str(value)
    number = int(text) if text.isascii() and text.isdigit() else 0
    if isinstance(value, bool) or not (1 <= number <= 65535 or re.fullmatch(r"[a-z0-9-]*[a-z][a-z0-9-]*", text)):
        raise ValueError(f"invalid port {text!r}")
    return text


def _path(text: str) -> str:
    if not text.startswith("/") or any(c.isspace() for c in text):
        raise ValueError(f"invalid path {text!r}: a path begins with /")
    return text


def _at_least_minimum(text: str) -> str:
    if parse_duration(text) < _MIN_SECONDS:
        raise ValueError(f"{text} is too short: the minimum is {_MIN_SECONDS:g} s")
    return text


_MIN_SECONDS = 0.1
_NUMBER = "0*[1-9][0-9]{0,4}"
_PORT = rf"{_NUMBER}|[a-z0-9-]*[a-z][a-z0-9-]*"
_PORT_NUMBER = {"type": "integer", "minimum": 1, "maximum": 65535}
Seconds = Annotated[DurationText, AfterValidator(_at_least_minimum)]


class ServiceReference(Model):
    """A Service, probed through the API server: needs permission to get services/proxy, but no route to the Service."""

    name: Name = Field(description="The name of the Service.")
    namespace: Namespace = Field(
        "workload", description="The namespace of the Service, or `workload` for the namespace of the run."
    )
    port: Annotated[str, BeforeValidator(_port), matching(_PORT), AlsoAccepts(_PORT_NUMBER)] = Field(
        "80", description="The number or the name of the port."
    )
    scheme: Literal["http", "https"] = Field("http", description="The protocol of the Service.")
    path: Annotated[str, AfterValidator(_path), matching(r"/\S*")] = Field("/", description="The path of the URL.")

    @property
    def proxy_name(self) -> str:
        """Name of the Service in URLs of services/proxy, and so in permissions."""
        return f"{'https:' if self.scheme == 'https' else ''}{self.name}:{self.port}"


class Probe(Model):
    """An endpoint that is probed during the whole run, as a client would."""

    ONE_OF = ("http", "tcp", "service")

    name: Name = Field(description="A name that expectations refer to.")
    http: Annotated[str, AfterValidator(_endpoint_url), matching(r"[Hh][Tt][Tt][Pp][Ss]?://\S+")] | None = Field(
        None, description="The URL. A status from 200 to 399 is a success."
    )
    tcp: Annotated[str, AfterValidator(_endpoint), matching(r"[^\s/@]+:[0-9]+")] | None = Field(
        None, description="HOST:PORT. An accepted connection is a success."
    )
    service: ServiceReference | None = Field(
        None, description="A Service, which nodefall requests through the proxy of the API server."
    )
    every: Seconds = Field("1s", description="The time from one request to the next.")
    timeout: Seconds = Field("2s", description="How long a request may take before it counts as failed.")

    def __str__(self) -> str:
        what = self.http or self.tcp or (f"Service {self.service.name}" if self.service else "")
        return f"{what}, every {self.every}"


class Query(Model):
    """A query to the Prometheus of the inventory: at intervals, and over the whole run at its end."""

    name: Name = Field(description="A name that expectations refer to.")
    query: str = Field(min_length=1, description="The query, in PromQL.")
    every: Seconds = Field("5s", description="The time from one query to the next.")
