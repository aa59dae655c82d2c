"""Base of every document and record of parameters: strict models, and types of their fields."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from chaos.core.bound import parse_bound
from chaos.core.duration import parse_duration

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


NAME = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"
Name = Annotated[str, Field(pattern=NAME)]
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

    name: Name
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
