"""Lines of /proc/self/mountinfo."""

from __future__ import annotations

MOUNT = r"\d+ \d+ \d+:\d+ [^\n]* - \S+ [^\n]*"  # proc_pid_mountinfo(5)
