"""The pytest plug-in (entry point ``pytest11``): experiments are test items. Modules are imported when needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from chaos.api.pytest.experiments import Runner

# In a pytest configuration, only if an inventory was given.
RUNNER: pytest.StashKey[Runner] = pytest.StashKey()
