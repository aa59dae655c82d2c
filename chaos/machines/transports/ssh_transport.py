"""Transport to OpenSSH servers."""

from __future__ import annotations

from contextlib import suppress

from chaos.core.errors import NodefallError
from chaos.machines.driver import HostContext, TransportDriver
from chaos.machines.transports.host_keys import known_hosts_name, load_known_hosts
from chaos.machines.transports.known_keys import KnownKeys
from chaos.machines.transports.settings import HostSettings, host_settings
from chaos.machines.transports.ssh import SshSession, open_session


class SshTransport(TransportDriver):
    """OpenSSH servers, through jump hosts where the inventory names some."""

    name = "ssh"
    systems = frozenset({"linux", "windows"})

    def open_session(self, host: HostContext) -> SshSession:
        address = "" if host.host.address else host.find_address()
        return open_session(host_settings(host.inventory, host.key, host.local, address), host.pin)

    def jump_hosts(self, host: HostContext) -> tuple[HostSettings, ...]:
        return host_settings(host.inventory, host.key, host.local, host.node).jumps

    def known_keys(self, host: HostContext) -> frozenset[str]:
        with suppress(NodefallError):  # reported where the host is used
            settings = host_settings(host.inventory, host.key, host.local)
            path = settings.known_hosts
            known = host.shared.get(("known keys", path), lambda: KnownKeys(load_known_hosts(settings)))
            return known.of(known_hosts_name(settings))
        return frozenset()

    def sudo_user(self, host: HostContext) -> str:
        settings = host_settings(host.inventory, host.key, host.local)
        return settings.user if settings.sudo_prefix else ""


DRIVER = SshTransport()
