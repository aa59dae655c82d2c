"""Imported once by the process that all commands are forked from."""

from tripwire import warm

warm()
