"""Risks of a machine that goes down, as the provider of the machine reports them."""

from __future__ import annotations

from msgspec import Struct


class PowerRisk(Struct, frozen=True):
    """Why a machine that goes down might be lost or stay down; ``hint`` is what to do before.

    ``when_not_ready``: it needs no machine that is down, a Node that stays not Ready is enough.
    """

    message: str
    hint: str
    when_not_ready: bool = False
