"""Settings of transports and power controls in an inventory. The schema is built from the installed drivers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal, Union, get_args

from pydantic import BaseModel, Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema

from chaos.core.field_types import Model, Secret
from chaos.core.installed_drivers import power_drivers, transport_drivers


class PowerSettings(Model):
    """Base of the settings of a power driver, under ``power`` of a host. ``kind``: a Literal of the driver's name."""

    kind: str = Field(description="The kind of the power control.")
    identity: str | None = Field(
        None, description="The UUID or name that the power control reports, if it differs from the Node's."
    )

    @property
    def names_machine(self) -> bool:
        """Whether the settings belong to a single machine. Other settings are also allowed in ``defaults`` of an
        inventory.
        """
        return True


class _File:
    """Marks a text as a path; a relative one is relative to the inventory file."""


FilePath = Annotated[str, _File()]


class OneOfPowerDrivers:
    """Annotation of ``PowerSettings``: the settings of the driver that ``kind`` names."""

    def members(self) -> tuple[type[PowerSettings], ...]:
        return tuple(driver.settings for driver in power_drivers().values())

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        union: Any = Union[self.members()]  # noqa: UP007 - built at run time
        return handler.generate_schema(Annotated[union, Field(discriminator="kind")])


class OneOfTransports:
    """Annotation of a text: the name of a transport driver."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return handler.generate_schema(Literal[tuple(transport_drivers())])


def file_keys(settings: type[BaseModel]) -> Iterator[tuple[str, ...]]:
    """The keys of ``settings`` that contain paths of files, including files with secrets. ``*`` stands for any key."""
    for name, field in settings.model_fields.items():
        key = field.alias or name
        if any(isinstance(mark, _File) for mark in field.metadata):
            yield (key,)
        for part in (field.annotation, *get_args(field.annotation)):
            if part is Secret:
                yield (key, "*", "file") if (getattr(field.annotation, "__origin__", None) is dict) else (key, "file")
            elif any(isinstance(mark, _File) for mark in getattr(part, "__metadata__", ())):
                yield (key,)
