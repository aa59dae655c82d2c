"""The phases of a run: planning, preflight checks, inject, rollback, failsafe timers, the recorder."""
