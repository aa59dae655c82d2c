"""From the options of ``nodefall init``, and answers on a terminal, to an inventory and the report of the doctor."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import msgspec

from chaos import __version__
from chaos.app.discovery.machines import LinuxTransport, to_document
from chaos.app.discovery.proposal import Choices, ClusterFacts, Proposal, propose
from chaos.app.init import (
    HostKey,
    context_names,
    find_ssh_use,
    inventory_name,
    known_hosts_path,
    known_hosts_text,
    read_cluster,
    read_host_keys,
    refuse_lab,
    render,
    written_kubeconfig,
    written_path,
)
from chaos.cli.output import echo, write_trusted
from chaos.cli.setup import init_questions as questions
from chaos.cli.setup.doctor import echo_report, report_document, run_doctor
from chaos.cluster.client import connect
from chaos.core.errors import UsageError
from chaos.core.installed_drivers import power_drivers
from chaos.core.inventory import Inventory
from chaos.documents.inventory import load_inventory
from chaos.engine.connection import login, refuse_before_side_effects
from chaos.machines.sessions.settings import LocalUser


@dataclass(frozen=True, slots=True)
class InitOptions:
    """The options of the command; ``asks``: without ``--yes``."""

    context: str | None
    kubeconfig: Path | None
    out: Path | None
    transport: LinuxTransport | None
    user: str | None
    port: int | None
    identity_file: Path | None
    asks: bool
    accept_fingerprints: bool
    force: bool
    doctor: bool
    as_json: bool


def create(options: InitOptions) -> int:
    """Write the inventory and run the doctor on it; the exit code. Raises NodefallError."""
    if options.asks and not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError("there is no terminal to ask", hint="give --yes to write what the cluster proposes")
    if options.transport == "pod" and any((options.user, options.port, options.identity_file)):
        raise UsageError("transport pod has no login", hint="leave out --user, --port and --identity-file")
    kubeconfig = str(options.kubeconfig.expanduser()) if options.kubeconfig else ""
    context = _context(options, kubeconfig)
    refuse_lab(kubeconfig, context)
    name = inventory_name(context)
    out = options.out or Path("hosts", f"{name}.yaml")
    _refuse_existing(out, options.force)
    with refuse_before_side_effects():
        with closing(connect(kubeconfig, context or None)) as kube:
            facts = read_cluster(kube, name, written_kubeconfig(kubeconfig), context)
        choices = _choices(options, facts)
        keys = _host_keys(facts, choices)
    if _accepts(options, keys):
        choices = replace(choices, known_hosts=known_hosts_path(out).name)
    proposal = propose(facts, choices, _kinds())
    _write(out, proposal, keys if choices.known_hosts else ())
    if not options.as_json:
        _echo_result(out, proposal, keys, trusted=choices.known_hosts is not None)
    report = run_doctor(lambda: load_inventory(out), (), Path("reports")) if options.doctor else None
    if options.as_json:
        document = _document(out, facts, proposal, keys, choices.known_hosts)
        document["doctor"] = report_document(report) if report else None
        click.echo(msgspec.json.encode(document).decode())
    elif report:
        echo("")
        echo_report(report, everything=False, as_json=False)
    return report.exit_code if report else 0


def _context(options: InitOptions, kubeconfig: str) -> str:
    """The chosen context, "" where there is none; the connection refuses an unknown one. Raises NodefallError."""
    if options.context:
        return options.context
    names, current = context_names(kubeconfig)
    if options.asks and len(names) > 1:
        return questions.ask_context(names, current)
    if not current and len(names) > 1:
        raise UsageError("the kubeconfig has no current context", hint="give --context NAME")
    return current or "".join(names)


def _refuse_existing(out: Path, force: bool) -> None:
    existing = [str(path) for path in (out, known_hosts_path(out)) if path.exists()]
    if existing and not force:
        raise UsageError(f"not overwritten: {', '.join(existing)}", hint="give another --out, or --force")


def _kinds() -> dict[str, Any]:
    return {name: driver.settings for name, driver in power_drivers().items()}


def _choices(options: InitOptions, facts: ClusterFacts) -> Choices:
    """The options, completed by a person's answers."""
    identity = written_path(options.identity_file.expanduser()) if options.identity_file else None
    choices = Choices(options.user, options.port, identity, transport=options.transport)
    choices = _with_ssh_config(choices, facts)
    if not options.asks:
        return choices
    proposal = propose(facts, choices, _kinds())
    echo(*proposal.head, *(f"note: {note}" for note in proposal.notes), err=True)
    proposed = to_document(proposal.entries).get("defaults", {}).get("transport")
    if options.transport is None and not _has_login(options) and proposed in ("ssh", "openssh", "pod"):
        choices = replace(choices, transport=questions.ask_transport(proposed))
    document = to_document(propose(facts, choices, _kinds()).entries)
    defaults = document.get("defaults", {})
    if defaults.get("transport") == "ssh":
        user = options.user or questions.ask_login(defaults.get("user", ""), login())
        key_file = identity or questions.ask_identity_file()
        choices = replace(choices, user=user, identity_file=key_file, proxy_jump=questions.ask_jump())
    return replace(choices, power=questions.ask_power(_describe_power(document), _kinds()))


def _has_login(options: InitOptions) -> bool:
    return any(each is not None for each in (options.user, options.port, options.identity_file))


def _with_ssh_config(choices: Choices, facts: ClusterFacts) -> Choices:
    """Transport openssh, where SSH is proposed and ssh is configured for the Nodes."""
    if choices.linux_transport not in (None, "openssh"):
        return choices
    access = propose(facts, choices, _kinds()).access
    usable = [node for node in facts.nodes if access[node.name].transport in ("ssh", "openssh")]
    use = find_ssh_use({node.name: node.address for node in usable}) if usable else None
    return replace(choices, transport="openssh", ssh_use=use) if use else choices


def _describe_power(document: dict[str, Any]) -> str:
    """Kinds of power control in an inventory, for people."""
    connections = [document.get("defaults", {}), *document.get("hosts", {}).values()]
    kinds = dict.fromkeys(each["power"]["kind"] for each in connections if "power" in each)
    return ", ".join(kinds) or "none"


def _host_keys(facts: ClusterFacts, choices: Choices) -> list[HostKey]:
    """What the machines that are used over SSH present; nothing for those behind a jump host."""
    if choices.proxy_jump:
        return []
    proposal = propose(facts, choices, _kinds())
    inventory = Inventory.model_validate(to_document(proposal.entries))
    addresses = {
        node.name: node.address
        for node in facts.nodes
        if proposal.access[node.name].transport == "ssh" and node.address
    }
    if addresses:
        echo(f"reading the host keys of {len(addresses)} machines", err=True)
    return read_host_keys(inventory, addresses, LocalUser(login(), Path.home()))


def _accepts(options: InitOptions, keys: Sequence[HostKey]) -> bool:
    """Show the fingerprints; whether the new ones are to be trusted. False if there are none."""
    questions.show_fingerprints(keys)
    if not any(key.status == "new" for key in keys):
        return False
    return questions.confirm_fingerprints(keys) if options.asks else options.accept_fingerprints


def _write(out: Path, proposal: Proposal, trusted: Sequence[HostKey]) -> None:
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot make {out.parent}: {error.strerror}", hint="give another --out") from error
    if trusted:
        write_trusted(known_hosts_path(out), known_hosts_text(trusted))
    write_trusted(out, render(proposal, __version__))
    load_inventory(out)


def _echo_result(out: Path, proposal: Proposal, keys: Sequence[HostKey], *, trusted: bool) -> None:
    echo(*proposal.head, *(f"note: {note}" for note in proposal.notes), f"wrote {out}")
    if trusted:
        echo(f"wrote {known_hosts_path(out)}")
    elif any(key.status == "new" for key in keys):
        echo("note: the new host keys were not accepted: doctor prints how to compare and add each")
    for status in ("changed", "revoked"):
        if names := [key.node for key in keys if key.status == status]:
            echo(f"note: never trusted here, as known_hosts has their host keys as {status}: {', '.join(names)}")
    if silent := [key for key in keys if key.status == "unreachable"]:
        echo(f"note: {len(silent)} of {len(keys)} machines present no host key: {silent[0].error}")


def _document(
    out: Path, facts: ClusterFacts, proposal: Proposal, keys: Sequence[HostKey], known_hosts: str | None
) -> dict[str, Any]:
    return {
        "inventory": str(out),
        "knownHosts": str(known_hosts_path(out)) if known_hosts else None,
        "context": facts.context,
        "clusterUID": facts.uid,
        "kubernetes": facts.version,
        "distribution": {"name": proposal.distribution.name, "shownBy": proposal.distribution.shown_by},
        "nodes": len(facts.nodes),
        "notes": list(proposal.notes),
        "hostKeys": [
            {
                "node": key.node,
                "status": key.status,
                "type": key.type,
                "fingerprint": key.fingerprint,
                "error": key.error,
            }
            for key in keys
        ],
    }
