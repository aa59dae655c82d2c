"""Shared helpers of a folder's tests can be imported by name."""

from __future__ import annotations

import sys
from pathlib import Path

for helpers in ("actions", "engine", "e2e", "lab/kit", "lab/replay", "lab/sim", "power", "realkit"):
    sys.path.insert(0, str(Path(__file__).parent / helpers))
