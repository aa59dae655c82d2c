"""Types of the keys of an inventory that several of its parts share, drivers included."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from chaos.model.document import Model


def full_match(pattern: str, says: str) -> AfterValidator:
    """Validator of a text that matches ``pattern`` as a whole; ``says`` completes the error for any other text."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"{text!r} {says}")
        return text

    return AfterValidator(check)


HostAddress = Annotated[str, full_match(r"[A-Za-z0-9:][A-Za-z0-9:.%_-]*", "is neither a name nor an address")]
ContainerName = Annotated[str, full_match(r"[A-Za-z0-9][A-Za-z0-9_.-]*", "is no container's name or ID")]
ContainerEngine = Literal["docker", "podman"]


def _no_login(url: str) -> str:
    """A login in a URL would be a secret in a file, and end in run.json."""
    if "@" in url.partition("://")[2].partition("/")[0]:
        raise ValueError("a login is not written into a URL; give it beside, with the secret as a reference")
    return url


Url = Annotated[str, AfterValidator(_no_login)]


class Secret(Model):
    """Where a secret is, never the secret."""

    env: str | None = None
    file: str | None = None
    command: list[str] | None = Field(None, min_length=1, description="argv, run without a shell")

    @model_validator(mode="before")
    @classmethod
    def _reference(cls, value: Any) -> Any:
        if not isinstance(value, dict | Secret):
            where = "{env: NAME}, {file: PATH} or {command: [PROGRAM, ARGUMENT]}"
            raise ValueError(f"a secret is not written in a file; say where it is: {where}")  # noqa: TRY004 - pydantic wants it
        return value

    @model_validator(mode="after")
    def _one(self) -> Self:
        if sum(x is not None for x in (self.env, self.file, self.command)) != 1:
            raise ValueError("give exactly one of env, file or command")
        return self
