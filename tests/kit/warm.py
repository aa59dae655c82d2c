"""Imported once by the process that all commands are forked from."""

from tests.kit.tripwire import warm

warm()
