"""Which kubeconfig an inventory is made from, and what it needs to know of that cluster. Changes nothing there."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from chaos.app.discovery.machines import Entries, SshUse, is_section
from chaos.app.discovery.nodes import KUBEADM_CONFIG, ListedNode
from chaos.app.discovery.proposal import ClusterFacts, Proposal
from chaos.cluster.client import ApiClient
from chaos.cluster.cluster_state import cluster_uid, server_version
from chaos.cluster.errors import KubeRejected
from chaos.cluster.kubeconfig import kubeconfig_files, read_kubeconfig
from chaos.cluster.reads import iter_pages
from chaos.cluster.watch_codec import DECODE_ERRORS, WatchCodec
from chaos.core.clock import SystemClock
from chaos.core.errors import NodefallError, Refused, Unreachable, UsageError
from chaos.core.inventory import Inventory
from chaos.core.kube import RESOURCES
from chaos.core.ports import KubeApi
from chaos.core.text import printable
from chaos.documents.inventory import load_inventory
from chaos.documents.yaml_text import inline
from chaos.machines.concurrency import run_concurrently
from chaos.machines.openssh.call import SshCall, SshConfig, read_config
from chaos.machines.power.libvirt import list_domains
from chaos.machines.sessions.host_keys import Entry, fingerprint, known_hosts_name, load_known_hosts
from chaos.machines.sessions.settings import HostSettings, LocalUser, host_settings
from chaos.machines.transports.key_scan import ScannedKey, scan

_CODEC = WatchCodec(RESOURCES["nodes"])
_decode_node = msgspec.json.Decoder(ListedNode).decode
_PERMISSIONS = "grant get on the namespace kube-system and list on nodes: without them there can be no inventory"
LAB_INVENTORY = "inventory.json"
_MAX_NAME = 63  # characters, as of a label's value


def refuse_lab(kubeconfig: str, context: str) -> None:
    """Raises UsageError for the kubeconfig of a lab, whose inventory lies beside its CA."""
    config = read_kubeconfig(kubeconfig)
    entry = config.contexts.get(context)
    cluster = config.clusters.get(entry.cluster) if entry else None
    if cluster is None or not cluster.certificate_authority:
        return
    inventory = Path(cluster.certificate_authority).with_name(LAB_INVENTORY)
    if is_lab_inventory(inventory):
        raise UsageError(
            f"the context {context!r} belongs to a lab, which already has an inventory",
            hint=f"use its inventory.json: --inventory {inventory}",
        )


def is_lab_inventory(path: Path) -> bool:
    """Whether it is the inventory of a simulated cluster."""
    try:
        cluster = load_inventory(path).cluster if path.is_file() else None
    except NodefallError:
        return False
    return cluster is not None and cluster.simulated


def read_cluster(kube: ApiClient, name: str, kubeconfig: str, context: str) -> ClusterFacts:
    """Nodes, version and UID. Raises Refused for missing permissions and for a cluster without Nodes, NodefallError."""
    try:
        uid, version = cluster_uid(kube), server_version(kube)
        nodes = _list_nodes(kube)
    except KubeRejected as error:
        hint = _PERMISSIONS if error.status == 403 else error.hint
        raise Refused(f"the cluster cannot be read: {error.message}", hint=hint) from error
    if not nodes:
        raise Refused(f"{kube.server} has no Nodes, so there is no inventory to write", hint="check --context")
    has_config, note = _has_kubeadm_config(kube)
    notes = (*(f"connection: {risk}" for risk in kube.risks), *([note] if note else []))
    return ClusterFacts(name, kubeconfig, context, kube.server, version, uid, nodes, has_config, notes, list_domains())


def _list_nodes(kube: KubeApi) -> tuple[ListedNode, ...]:
    """All Nodes by name. Raises NodefallError."""
    nodes: dict[str, ListedNode] = {}
    for page, restarts in iter_pages(kube, "/api/v1/nodes", _CODEC):
        if restarts:
            nodes.clear()
        for raw in page.items or ():
            try:
                node = _decode_node(raw)
            except DECODE_ERRORS as error:
                raise NodefallError(f"a Node cannot be decoded: {error}") from error
            nodes[node.name] = node
    return tuple(nodes[name] for name in sorted(nodes))


def _has_kubeadm_config(kube: KubeApi) -> tuple[bool, str]:
    """Whether kubeadm made the cluster, and a note where that cannot be read."""
    status = kube.request("GET", KUBEADM_CONFIG).status
    if status in (200, 404):
        return status == 200, ""
    return (
        False,
        f"unknown whether kubeadm created the cluster: reading ConfigMap kubeadm-config failed with status {status}",
    )


def inventory_name(context: str) -> str:
    """A context as the name of an inventory and its file: of an ARN, say, what follows the last slash."""
    name = re.sub(r"[^a-z0-9]+", "-", context.rpartition("/")[2].lower()).strip("-")[:_MAX_NAME].strip("-")
    return name or "cluster"


def context_names(kubeconfig: str) -> tuple[list[str], str]:
    """Names of the contexts, and the current one, "" for none; files as in ``read_kubeconfig``. Raises BadInput."""
    config = read_kubeconfig(kubeconfig)
    return list(config.contexts), config.current_context


def written_kubeconfig(kubeconfig: str) -> str:
    """Its files as an inventory has them; "" where there are none, as in a pod."""
    return os.pathsep.join(written_path(path) for path in kubeconfig_files(kubeconfig) if path.exists())


def written_path(path: Path) -> str:
    """The path as an inventory has it: from the home directory, else absolute."""
    path, home = path.absolute(), Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)


_WIDTH = 140  # a longer line has its comment above
KeyStatus = Literal["known", "new", "changed", "revoked", "unreachable"]


def render(proposal: Proposal, nodefall: str) -> str:
    """The text of the inventory; ``nodefall``: the version that writes it."""
    head = [
        f"Written by nodefall {nodefall} init; edit it as you like. Paths are relative to this file.",
        *proposal.head,
        *(f"Note: {note}." for note in proposal.notes),
    ]
    return "\n".join([*(f"# {printable(line)}" for line in head), *_lines(proposal.entries, "")]) + "\n"


def _lines(entries: Entries, indent: str) -> Iterator[str]:
    for entry in entries:
        comment = f"# {printable(entry.reason)}" if entry.reason else ""
        text = f"{indent}{inline(entry.key)}:" + ("" if is_section(entry) else f" {inline(entry.value)}")
        yield from _with_comment(text, comment, indent)
        if is_section(entry):
            yield from _lines(entry.value, f"{indent}  ")


def _with_comment(text: str, comment: str, indent: str) -> Iterable[str]:
    if not comment:
        return (text,)
    joined = f"{text}  {comment}"
    return (joined,) if len(joined) <= _WIDTH else (f"{indent}{comment}", text)


# What ssh_config may set of a connection that transport ssh would need in the inventory, or cannot do.
_SSH_KEYS = (
    *("user", "port", "proxyjump", "proxycommand", "identityfile", "certificatefile", "identityagent"),
    *("pkcs11provider", "hostkeyalias", "knownhostscommand", "userknownhostsfile", "globalknownhostsfile"),
)


def find_ssh_use(addresses: Mapping[str, str]) -> SshUse | None:
    """What ssh is configured to do for most Nodes, by their names, else for one by its address; None for nothing."""
    try:
        usual = read_config(SshCall("nodefall", ("-F", "none")))
        by_name = [keys for name in addresses if (keys := _ssh_keys(name, usual))]
        if by_name and 2 * len(by_name) >= len(addresses):
            return SshUse("name", tuple(dict.fromkeys(key for keys in by_name for key in keys)))
        by_address = [keys for address in addresses.values() if address and (keys := _ssh_keys(address, usual))]
    except Refused:  # no ssh here, or one that does not work for people either
        return None
    return SshUse("address", tuple(dict.fromkeys(key for keys in by_address for key in keys))) if by_address else None


def _ssh_keys(destination: str, usual: SshConfig) -> tuple[str, ...]:
    config = read_config(SshCall(destination))
    other = tuple(key for key in _SSH_KEYS if config.all(key) != usual.all(key))
    return ("hostname", *other) if config.get("hostname") != destination.lower() else other


@dataclass(frozen=True, slots=True)
class HostKey:
    """The key that a host presents; ``error`` says why there is none."""

    node: str
    name: str  # in known_hosts
    status: KeyStatus
    type: str = ""
    fingerprint: str = ""
    line: str = ""  # of known_hosts
    error: str = ""


def read_host_keys(inventory: Inventory, addresses: Mapping[str, str], local: LocalUser) -> list[HostKey]:
    """The keys of hosts by node, at their ``addresses``. No login is tried. Raises Refused."""
    settings = {node: host_settings(inventory, node, local, address) for node, address in addresses.items()}
    if not settings:
        return []
    known = load_known_hosts(next(iter(settings.values())))  # one file: that of defaults

    def read(node: str) -> HostKey:
        return _read(node, settings[node], known)

    clock = SystemClock()
    try:
        return run_concurrently(list(settings), read, clock)
    finally:
        clock.close()


def _read(node: str, settings: HostSettings, known: Iterable[Entry]) -> HostKey:
    name = known_hosts_name(settings)
    try:
        key = scan(settings)
    except Unreachable as error:
        return HostKey(node, name, "unreachable", error=error.message)
    return HostKey(
        node, name, _status(name, key, known), key.type, fingerprint(key.blob), f"{name} {key.type} {key.base64}"
    )


def _status(name: str, key: ScannedKey, known: Iterable[Entry]) -> KeyStatus:
    entries = [entry for entry in known if entry.covers(name)]
    if any(entry.marker == "@revoked" and entry.key == key.blob for entry in entries):
        return "revoked"
    plain = [entry for entry in entries if not entry.marker]
    if any(entry.key == key.blob for entry in plain):
        return "known"
    return "changed" if any(entry.type == key.type for entry in plain) else "new"


def known_hosts_text(keys: Iterable[HostKey]) -> str:
    """Lines for the keys that are new or known, never for one that has changed or is revoked."""
    return "".join(f"{line}\n" for line in dict.fromkeys(key.line for key in keys if key.status in ("new", "known")))


def known_hosts_path(out: Path) -> Path:
    """The file of accepted keys beside an inventory."""
    return out.with_suffix(".known_hosts")
