"""The questions of ``nodefall init``, on a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError

from chaos.app.discovery.machines import LinuxTransport
from chaos.app.discovery.powers import Kinds, PowerChoice
from chaos.app.init import HostKey, written_path
from chaos.cli.output import echo
from chaos.core.text import align_columns, printable

_PROPOSED, _NO_FILE = "proposed", "none"
# Kinds whose settings follow from the name of a machine: what to ask for, with an example.
_PATTERNS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "redfish": {
        "url": ("URL of its ComputerSystem", "https://bmc-{node}.example/redfish/v1/Systems/1"),
        "user": ("login of the BMCs", "admin"),
    },
    "ipmi": {
        "address": ("address of its BMC", "bmc-{node}.example"),
        "user": ("login of the BMCs", "admin"),
    },
}


def ask_context(contexts: Sequence[str], current: str) -> str:
    """One of several contexts."""
    echo("contexts: " + ", ".join(map(printable, contexts)), err=True)
    return str(
        click.prompt("context", default=current or None, type=click.Choice(contexts), show_choices=False, err=True)
    )


def ask_transport(proposed: LinuxTransport) -> LinuxTransport:
    """How commands reach the Linux nodes."""
    echo(
        "transport: ssh needs a login on the nodes, openssh one that the ssh of this machine is configured for; "
        "pod makes privileged pods on them, and removes them again",
        err=True,
    )
    choices: list[LinuxTransport] = ["ssh", "openssh", "pod"]
    chosen: LinuxTransport = click.prompt("transport", default=proposed, type=click.Choice(choices), err=True)
    return chosen


def ask_login(proposed: str, local: str) -> str:
    """The login of the machines over SSH."""
    return str(click.prompt("login over SSH", default=proposed or local, err=True)).strip()


def ask_identity_file() -> str | None:
    """A private key; None for the keys of the agent."""
    text = click.prompt(
        "private key (agent: only the keys of the SSH agent)", default="agent", value_proc=_key, err=True
    )
    return None if text == "agent" else written_path(Path(str(text)).expanduser())


def ask_jump() -> str | None:
    """A jump host; None where the nodes are reached directly."""
    text = str(
        click.prompt("jump host as user@address, none if the nodes are reached directly", default="none", err=True)
    )
    return None if text.strip() == "none" else text.strip()


def ask_power(proposed: str, kinds: Kinds) -> PowerChoice | None:
    """Power controls of the machines; None for the proposal."""
    choices = [_PROPOSED, *(kind for kind in _PATTERNS if kind in kinds), "none"]
    echo(f"power controls: {_PROPOSED} is {proposed}", err=True)
    kind = click.prompt("power control", default=_PROPOSED, type=click.Choice(choices), err=True)
    if kind == _PROPOSED:
        return None
    return PowerChoice({}) if kind == "none" else _ask_settings(kind, kinds)


def _ask_settings(kind: str, kinds: Kinds) -> PowerChoice:
    """Asked for again until the settings of the kind accept the answers."""
    echo("{node} stands for the Node's name", err=True)
    while True:
        settings: dict[str, Any] = {"kind": kind}
        for key, (text, example) in _PATTERNS[kind].items():
            settings[key] = str(click.prompt(text, default=example, err=True)).strip()
        if (
            kind == "redfish"
            and (file := click.prompt("file with the CA of the BMCs", default=_NO_FILE, err=True)) != _NO_FILE
        ):
            settings["caFile"] = written_path(Path(str(file)).expanduser())
        variable = str(click.prompt("variable with their password", default="NODEFALL_BMC_PASSWORD", err=True)).strip()
        choice = PowerChoice({**settings, "password": {"env": variable}})
        try:
            kinds[kind].model_validate(choice.of("node-1"))
        except ValidationError as error:
            first = error.errors()[0]
            echo(f"{'.'.join(map(str, first['loc']))}: {first['msg'].removeprefix('Value error, ')}", err=True)
        else:
            return choice


def confirm_fingerprints(keys: Sequence[HostKey]) -> bool:
    """Whether a person accepts the new ones among the keys that were shown."""
    echo(
        "compare them with `ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` on the consoles of the machines", err=True
    )
    number = sum(key.status == "new" for key in keys)
    return click.confirm(f"trust these {number} host keys?", default=False, err=True)


def show_fingerprints(keys: Sequence[HostKey]) -> None:
    """Print the keys that are not known, and who did not answer."""
    rows = [(key.node, key.name, key.status, f"{key.type} {key.fingerprint}") for key in keys if key.fingerprint]
    rows = [row for row in rows if row[2] != "known"]
    if rows:
        echo("host keys:", *(f"  {line}" for line in align_columns(rows)), err=True)


def _key(text: str) -> str:
    text = text.strip()
    if text != "agent" and not Path(text).expanduser().is_file():
        raise click.BadParameter(f"no file {text}")
    return text
