"""The base of every document and every set of parameters: strict models and types of fields."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    model_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from chaos.core.duration import BOUND, DURATION, parse_bound, parse_duration
from chaos.core.json_schema import JsonSchema, matching

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
    matching(BOUND),
    Field(examples=["kubelet.shutdownGracePeriod + 10s"]),
]


DurationText = Annotated[
    str,
    BeforeValidator(_require_unit),
    AfterValidator(_duration_text),
    matching(DURATION),
    Field(examples=["90s"]),
]


class Model(BaseModel):
    """Base of all documents: unknown keys are errors; keys in YAML are camelCase.

    ``ONE_OF`` and ``SOME_OF``: keys in YAML of which exactly one, or at least one, is given and is not null.
    """

    ONE_OF: ClassVar[tuple[str, ...]] = ()
    SOME_OF: ClassVar[tuple[str, ...]] = ()
    model_config = ConfigDict(extra="forbid", populate_by_name=True, frozen=True)

    @model_validator(mode="after")
    def _check_given(self) -> Self:
        given = {
            field.alias or name
            for name, field in type(self).model_fields.items()
            if name in self.model_fields_set and getattr(self, name) is not None
        }
        if self.ONE_OF and len(given & set(self.ONE_OF)) != 1:
            raise ValueError(f"give exactly one of {', '.join(self.ONE_OF[:-1])} or {self.ONE_OF[-1]}")
        if self.SOME_OF and not given & set(self.SOME_OF):
            raise ValueError(f"give {', '.join(self.SOME_OF)} or both")
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        found = handler(core)
        schema = handler.resolve_ref_schema(found)
        for keyword, keys in (("oneOf", cls.ONE_OF), ("anyOf", cls.SOME_OF)):
            forms = [{"required": [key], "properties": {key: {"not": {"type": "null"}}}} for key in keys]
            schema.update({keyword: forms} if forms else {})
        return found


class Metadata(Model):
    """``annotations`` are for people and other programs; nodefall reads only the lab of a rehearsal from them."""

    name: Name = Field(description="A name of lower-case letters, digits and hyphens, at most 63 characters.")
    labels: dict[str, str] = Field({}, description="Labels to select documents by, for example with pytest -m.")
    annotations: dict[str, str] = Field({}, description="Notes for people and other programs.")


@dataclass(frozen=True, eq=False)
class _FullMatch(JsonSchema):
    pattern: str
    error: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def _check(self, text: str) -> str:
        if not re.fullmatch(self.pattern, text):
            raise ValueError(f"{text!r} {self.error}")
        return text


def full_match(pattern: str, error: str) -> _FullMatch:
    """Validator of a text that matches ``pattern`` as a whole; ``error`` completes the message for any other text."""
    keywords = {} if "(?i:" in pattern else matching(pattern.replace(r"\Z", "$")).keywords
    return _FullMatch(keywords, pattern, error)


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


_PORT = "(?:0*(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]))"


HttpUrl = Annotated[
    str,
    AfterValidator(_no_login),
    AfterValidator(_is_http),
    JsonSchema(
        {"pattern": rf"^[Hh][Tt][Tt][Pp][Ss]?://(?![^/]*@)(?:\[[^\s\]]+\]|[^\s/:?#\[\]]+)(?::{_PORT}?)?(?:[/?#]\S*)?$"}
    ),
]


LabelName = Annotated[str, full_match(r"[a-zA-Z_][a-zA-Z0-9_]*", "is not a name of a label of Prometheus")]


class Secret(Model):
    """Reference to a secret."""

    ONE_OF = ("env", "file", "command")

    env: str | None = Field(None, description="The environment variable that contains the secret.")
    file: str | None = Field(None, description="The file that contains the secret. A line break at its end is ignored.")
    command: list[str] | None = Field(
        None, min_length=1, description="The program and its arguments. It runs without a shell."
    )

    @model_validator(mode="before")
    @classmethod
    def _reference(cls, value: Any) -> Any:
        if not isinstance(value, dict | Secret):
            forms = "{env: NAME}, {file: PATH} or {command: [PROGRAM, ARGUMENT]}"
            raise ValueError(f"a secret must not be in this file; refer to it: {forms}")  # noqa: TRY004 - pydantic wants it
        return value
