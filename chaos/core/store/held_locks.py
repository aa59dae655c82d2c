"""Which files are locked, without locking them: whoever tries a lock may be in the way of the run that is about to."""

from __future__ import annotations

from pathlib import Path

_LOCKS = Path("/proc/locks")


def flocked_inodes(locks: Path = _LOCKS) -> frozenset[int]:
    """Inodes with a lock of flock(2), by proc_locks(5): of processes that this one may see, empty where it is missing.

    Devices are left out: those of overlayfs and btrfs are not those that stat(2) reports.
    """
    try:
        lines = locks.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return frozenset()
    fields = (line.split() for line in lines)
    found = [each[5].rpartition(":")[2] for each in fields if len(each) > 5 and each[1] == "FLOCK"]  # "->": it waits
    return frozenset(int(inode) for inode in found if inode.isdecimal())
