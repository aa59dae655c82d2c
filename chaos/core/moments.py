"""Moments in stored files."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

# Seconds since the epoch that a date can show: those of the years 1 to 9999.
Moment = Annotated[float, Meta(ge=-62_135_596_800, le=253_402_300_799)]
