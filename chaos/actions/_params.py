"""Parameters of actions that take none."""

from __future__ import annotations

from chaos.model.document import Model


class NoParams(Model):
    """No parameters."""
