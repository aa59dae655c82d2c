"""The experiments and inventories of the distribution: in the package, or beside it in a checkout."""

from __future__ import annotations

from pathlib import Path

import chaos

_PACKAGE = Path(chaos.__file__).parent


def bundled_path(name: str) -> Path:
    """The path of a bundled file, as ``experiments/graceful-poweroff.yaml``."""
    packaged = _PACKAGE / "shipped" / name
    return packaged if packaged.exists() else _PACKAGE.parent / name
