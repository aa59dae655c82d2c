"""Job control: whether the terminal is this process's to draw on and read from."""

from __future__ import annotations

import os
from typing import TextIO


def is_foreground(stream: TextIO) -> bool:
    """Whether this process is in the foreground of the terminal of ``stream``, or no shell controls its jobs."""
    try:
        return os.tcgetpgrp(stream.fileno()) == os.getpgrp()
    except (OSError, ValueError):
        return True
