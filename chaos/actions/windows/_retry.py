"""Scripts of failsafe tasks that try again: what they need may start after them, as at a boot."""

from __future__ import annotations

_ATTEMPTS, _PAUSE = 60, 5  # seconds between two attempts: 5 minutes, then the next boot


def retry_until(check: str, attempt: str) -> str:
    """A script that makes attempts until ``check``, which exits with 0 once they have succeeded; 1 at the end."""
    return f"$left={_ATTEMPTS};while($left -gt 0){{{check};{attempt};$left-=1;Start-Sleep -Seconds {_PAUSE}}};exit 1"
