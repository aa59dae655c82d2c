"""Imported once by the process that all commands are forked from."""

from tests.kit import shifted_clocks

shifted_clocks.install()

from tests.kit.tripwire import warm  # noqa: E402 - it imports functions of time by name

warm()
