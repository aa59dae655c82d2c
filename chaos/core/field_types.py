"""Base of every document and record of parameters: strict models, and types of their fields.

Factors of deadlines are ``2`` and ``1.5x``, at least 1; versions of Kubernetes are minor ones, in ranges as
``>=v1.32, <v1.36``.
Moments in stored files.
"""

from __future__ import annotations

import math
import operator
import re
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from msgspec import Meta
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

from chaos.core.duration import parse_bound, parse_duration

API_VERSION = "nodefall.dev/v1alpha1"
_LIMIT = 100.0
_TEXT = re.compile(r"(\d+(?:\.\d+)?)x?", re.ASCII)
_VERSION = re.compile(r"v?(\d+)\.(\d+)")
_BOUND = re.compile(r"(>=|<=|==|>|<|=)\s*v?(\d{1,3})\.(\d{1,3})", re.ASCII)
_OPERATORS = {
    ">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt, "=": operator.eq, "==": operator.eq,
}  # fmt: skip


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


def _no_text(value: Any) -> Any:
    if isinstance(value, str | int) and not isinstance(value, bool):  # pydantic takes "True", "yes" and 1
        raise PydanticCustomError("bool_type", "expected true or false")
    return value


NAME = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"


Name = Annotated[str, Field(pattern=NAME)]


Flag = Annotated[bool, BeforeValidator(_no_text)]


BoundText = Annotated[
    str,
    BeforeValidator(_require_unit),
    AfterValidator(_bound_text),
    Field(examples=["kubelet.shutdownGracePeriod + 10s"]),
]


DurationText = Annotated[str, BeforeValidator(_require_unit), AfterValidator(_duration_text), Field(examples=["90s"])]


class Model(BaseModel):
    """Base of all documents: unknown keys are errors; keys in YAML are camelCase."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True, frozen=True)


class Metadata(Model):
    """``annotations`` are for people and other programs; nodefall reads only the lab of a rehearsal from them."""

    name: Name = Field(description="A name of lower-case letters, digits and hyphens, at most 63 characters.")
    labels: dict[str, str] = Field({}, description="Labels to select documents by, for example with pytest -m.")
    annotations: dict[str, str] = Field({}, description="Notes for people and other programs.")


def full_match(pattern: str, error: str) -> AfterValidator:
    """Validator of a text that matches ``pattern`` as a whole; ``error`` completes the message for any other text."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"{text!r} {error}")
        return text

    return AfterValidator(check)


HostAddress = Annotated[str, full_match(r"[A-Za-z0-9:][A-Za-z0-9:.%_-]*", "is neither a name nor an address")]


ContainerName = Annotated[str, full_match(r"[A-Za-z0-9][A-Za-z0-9_.-]*", "is no container's name or ID")]


# A full path on Windows, of characters that mean nothing to a shell.
CRASH_TOOL = r"[A-Za-z]:\\(?:[A-Za-z0-9_.() -]{1,64}\\){0,8}[A-Za-z0-9_.-]{1,64}\.exe"


CrashTool = Annotated[
    str,
    full_match(CRASH_TOOL, r"is not the full path of a program on Windows; write it like C:\Tools\notmyfault64.exe"),
]


# Never / or below /run, where systemd has the failsafe timers. No part begins with a point: there is no way up.
_PART = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"


MOUNT_POINT = rf"/(?!(?:run|proc|sys|dev)(?:/|\Z)){_PART}(?:/{_PART})*"


MountPath = Annotated[
    str, full_match(MOUNT_POINT, "is no full path of plain characters, or is /, or in /run, /proc, /sys or /dev")
]


_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"


DNS_NAME = rf"(?!.{{254}}){_LABEL}(?:\.{_LABEL})*"


DnsName = Annotated[str, full_match(DNS_NAME, "is no DNS name")]


BLOCK_DEVICE = rf"/dev/{_PART}(?:/{_PART})*"


# Of the facts kubelet-unit and runtime-unit.
NODE_UNIT = (
    r"(?:kubelet|k3s(?:-agent)?|rke2-(?:server|agent)|k0s(?:controller|worker)|containerd|crio|docker"
    r"|snap\.kubelet\.daemon|snap\.microk8s\.daemon-(?:kubelite|kubelet|containerd))\.service"
)


DISK_UNIT = rf"kubepods\.slice|{NODE_UNIT}"


DiskUnit = Annotated[
    str, full_match(DISK_UNIT, "is neither kubepods.slice nor the service of a kubelet or container runtime")
]


MOUNT_OPTIONS = r"rw(?:,(?:nosuid|nodev|noexec|nosymfollow|noatime|nodiratime|relatime))*"  # of a mount, with rw


SimulatedVersion = Annotated[
    str, full_match(r"v1\.3[1-6](\.\d{1,3})?", "is not simulated; give v1.31 to v1.36, or a patch such as v1.36.2")
]
ContainerEngine = Literal["docker", "podman"]


def _no_login(url: str) -> str:
    """A login in a URL would be a secret in the inventory file, and be copied to run.json."""
    if "@" in url.partition("://")[2].partition("/")[0]:
        raise ValueError("a URL must not contain a login; give user, and the secret by reference")
    return url


def _is_http(url: str) -> str:
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        is_valid = False
    if not is_valid or any(character.isspace() or not character.isprintable() for character in url):
        raise ValueError(f"invalid URL {url!r}: expected http or https")
    return url


def without_query(url: str) -> str:
    """``url`` as it may be printed: its query may have a secret in it."""
    return url.partition("?")[0]


Url = Annotated[str, AfterValidator(_no_login)]


HttpUrl = Annotated[str, AfterValidator(_no_login), AfterValidator(_is_http)]


LabelName = Annotated[str, full_match(r"[a-zA-Z_][a-zA-Z0-9_]*", "is not a name of a label of Prometheus")]


class Secret(Model):
    """Reference to a secret."""

    env: str | None = Field(None, description="The environment variable that contains the secret.")
    file: str | None = Field(None, description="The file that contains the secret. A line break at its end is ignored.")
    command: list[str] | None = Field(None, min_length=1, description="argv, run without a shell")

    @model_validator(mode="before")
    @classmethod
    def _reference(cls, value: Any) -> Any:
        if not isinstance(value, dict | Secret):
            forms = "{env: NAME}, {file: PATH} or {command: [PROGRAM, ARGUMENT]}"
            raise ValueError(f"a secret must not be in this file; refer to it: {forms}")  # noqa: TRY004 - pydantic wants it
        return value

    @model_validator(mode="after")
    def _one(self) -> Self:
        if sum(x is not None for x in (self.env, self.file, self.command)) != 1:
            raise ValueError("give exactly one of env, file or command")
        return self


def parse_factor(value: Any) -> float:
    """The factor ``value``: a number, or a text like ``3x``. Raises ValueError unless it is from 1 to 100."""
    text = "" if isinstance(value, bool) else str(value)[:20]
    match = _TEXT.fullmatch(text)
    factor = float(match[1]) if match else math.nan
    if not 1 <= factor <= _LIMIT:
        raise ValueError(f"{str(value)[:20]!r} is not a factor from 1 to {_LIMIT:g}; write it like 2 or 1.5x")
    return factor


Factor = Annotated[
    float,
    BeforeValidator(parse_factor),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "minimum": 1, "maximum": _LIMIT},
                {"type": "string", "pattern": r"^\d+(\.\d+)?x?$"},
            ],
            "examples": ["3x", 1.5],
        }
    ),
]


def parse_minor(text: str) -> tuple[int, int] | None:
    """Major and minor version of ``v1.33.2`` or ``v1.33.2-gke.100``; None for any other text."""
    match = _VERSION.match(text)
    return (int(match[1]), int(match[2])) if match else None


def in_range(version: tuple[int, int], text: str) -> bool:
    """Whether the minor version is within all bounds of ``text``. Raises ValueError."""
    return all(_OPERATORS[symbol](version, bound) for symbol, bound in _bounds(text))


def _bounds(text: str) -> list[tuple[str, tuple[int, int]]]:
    bounds = []
    for part in text.split(","):
        match = _BOUND.fullmatch(part.strip())
        if match is None:
            raise ValueError(f"{text!r} is no range of versions; write it like '>=v1.32' or '>=v1.32, <v1.36'")
        bounds.append((match[1], (int(match[2]), int(match[3]))))
    return bounds


def _check(text: str) -> str:
    _bounds(text)
    return text


VersionRange = Annotated[str, AfterValidator(_check)]


# Seconds since the epoch that a date can show: those of the years 1 to 9999.
Moment = Annotated[float, Meta(ge=-62_135_596_800, le=253_402_300_799)]
