"""Connections of an inventory: what most machines share goes to ``defaults``, so that hundreds need no entry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from chaos.app.discovery.entries import Entries, Entry
from chaos.app.discovery.machines import Access

PASSWORD = "NODEFALL_WINRM_PASSWORD"  # noqa: S105 - the name of a variable
Hosts = dict[str, dict[str, Any]]


def connections(access: Mapping[str, Access], user: str | None, ssh: Entries) -> tuple[Entries, Hosts]:
    """Entries of ``defaults``, and the keys of each host that differs. ``user`` replaces the proposed logins of SSH."""
    linux = [each for each in access.values() if each.transport in ("ssh", "docker", "pod")]
    usual = Counter(each.transport for each in linux).most_common(1)
    transport = usual[0][0] if usual else ""
    shared: Entries = ()
    login = ""
    if transport == "docker":
        shared = tuple(_docker(next(each for each in linux if each.transport == "docker")))
    elif transport == "pod":
        shared = (Entry("transport", "pod", next(each.reason for each in linux if each.transport == "pod")),)
    elif transport == "ssh":
        logins = [each for each in linux if each.transport == "ssh"]
        (first, _), *_ = Counter(each.user for each in logins).most_common(1)
        login, reason = (
            (first, next(each.reason for each in logins if each.user == first)) if user is None else (user, "")
        )
        shared = (*_ssh(login, reason), *ssh)
    hosts = {name: dict(_differences(each, transport, login, user)) for name, each in access.items()}
    return shared, {name: keys for name, keys in hosts.items() if keys}


def _docker(access: Access) -> Iterator[Entry]:
    yield Entry("transport", "docker", access.reason)
    if access.engine:
        yield Entry("engine", access.engine, "by the provider IDs of the Nodes")


def _ssh(login: str, reason: str) -> Iterator[Entry]:
    yield Entry("transport", "ssh", "commands are run over OpenSSH; host keys are verified")
    if login:
        yield Entry("user", login, reason or "as given")
    yield Entry("sudo", True, "without a password, where the login is not root: nodefall sudoers prints the rules")


def _differences(access: Access, transport: str, login: str, user: str | None) -> Iterator[tuple[str, Any]]:
    if access.transport == "winrm":
        yield from (("os", "windows"), ("transport", "winrm"), ("user", access.user))
        yield "options", {"password": {"env": PASSWORD}}
    elif access.transport and access.transport != transport:
        yield "transport", access.transport
    if access.transport == "ssh" and user is None and access.user and access.user != login:
        yield "user", access.user
