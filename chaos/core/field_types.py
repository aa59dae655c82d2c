"""Types of inventory keys that several models share, those of drivers included."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from chaos.core.document import Model


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
    r"(?:kubelet|k3s(?:-agent)?|rke2-(?:server|agent)|containerd|crio|docker"
    r"|snap\.kubelet\.daemon|snap\.microk8s\.daemon-(?:kubelite|kubelet|containerd))\.service"
)
DISK_UNIT = rf"kubepods\.slice|{NODE_UNIT}"
DiskUnit = Annotated[
    str, full_match(DISK_UNIT, "is neither kubepods.slice nor the service of a kubelet or container runtime")
]
MOUNT_OPTIONS = r"rw(?:,(?:nosuid|nodev|noexec|nosymfollow|noatime|nodiratime|relatime))*"  # of a mount, with rw
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

    env: str | None = None
    file: str | None = None
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
