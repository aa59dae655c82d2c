"""Streams that lead nowhere: of programs without a client, and of redirections."""

from __future__ import annotations


def discard(_: str) -> None:
    """Take output, and forget it."""


async def no_input() -> str:
    """A line of an empty stdin: "" is its end."""
    return ""
