"""Confirmation by a typed name, before real machines go down."""

from __future__ import annotations

import sys

import click

from chaos.core.errors import Refused


def confirm_name(kind: str, name: str, fault: str, machines: str) -> None:
    """Say which ``machines`` go down, and ask for the ``name`` of the ``kind``, an inventory or a fleet.

    ``fault``: what takes them down, a run or a fleet. Raises Refused if another name is typed, and without a terminal.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Refused(
            f"not confirmed: the {fault} takes down {machines}, and there is no terminal to ask on",
            hint="pass --yes to confirm",
        )
    question = f"{machines} will go down. Type the name of the {kind} to continue"
    typed = click.prompt(question, default="", show_default=False, err=True)
    if typed.strip() != name:
        raise Refused(f"not confirmed: the name of the {kind} is {name!r}", hint="pass --yes to confirm without asking")
