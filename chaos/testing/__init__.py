"""For the tests of plug-ins: the contract of each kind as a function that raises AssertionError."""

from chaos.testing.action import check_action, check_pair

__all__ = ["check_action", "check_pair"]
