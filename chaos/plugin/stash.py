"""What the plug-in stores in a pytest configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from chaos.plugin.runner import Runner

RUNNER: pytest.StashKey[Runner] = pytest.StashKey()  # only set if an inventory was given
