"""Files of another user."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

UNPRIVILEGED = 65534


def give_away(path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Make ``path``, or the link that it is, another user's: by root in fact, else this process seems to be another.

    Returns the owner's user ID.
    """
    if os.geteuid() == 0:
        os.chown(path, UNPRIVILEGED, -1, follow_symlinks=False)
    else:
        other = os.geteuid() + 1
        monkeypatch.setattr("os.geteuid", lambda: other)
    return path.lstat().st_uid
