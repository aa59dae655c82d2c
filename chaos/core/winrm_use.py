"""What one run uses of the WinRM service of a host, and the quotas that permit it."""

from __future__ import annotations

MAX_COMMANDS = 1000  # in one shell; each counts against the operations of a user until the shell is deleted
# The one in use; the one before it, while its last commands run; one that a lost connection left until it is idle.
_SHELLS = 3
# A step's command, an observer's reading and a proof, each PowerShell with a program that it starts.
_PROCESSES = 6

# Least values by the names of winrm/config. Above the operations of a full shell are those of the former one.
LEAST_QUOTAS = {
    "MaxShellsPerUser": _SHELLS,
    "MaxProcessesPerShell": _PROCESSES,
    "MaxConcurrentOperationsPerUser": MAX_COMMANDS + _PROCESSES,
}
