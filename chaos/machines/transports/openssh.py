"""Transport by the ssh program of this machine: its user's ssh_config, agents, certificates and known hosts."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Literal

from pydantic import Field

from chaos.core.driver import FilePath
from chaos.core.errors import NodefallError, Refused
from chaos.core.field_types import Model
from chaos.machines.driver import HostContext, TransportDriver
from chaos.machines.local import refuse_untrusted
from chaos.machines.openssh.call import SshCall, known_hosts_files, resolve, ssh_call
from chaos.machines.openssh.readiness import find_problems
from chaos.machines.openssh.session import OpensshSession
from chaos.machines.sessions.host_keys import KnownKeys, known_hosts_name, read_known_hosts
from chaos.machines.sessions.settings import HostSettings, host_settings


class OpensshOptions(Model):
    config_file: FilePath | None = Field(
        None, alias="configFile", description="The ssh_config to use instead of the files of this user and machine."
    )
    destination: Literal["address", "name"] = Field(
        "address",
        description="What ssh connects to if the host has no address here: the address of its Node, or "
        "the host's name as a Host of ssh_config.",
    )


class OpensshTransport(TransportDriver):
    """OpenSSH's client. Its configuration provides what the inventory omits, including jump hosts."""

    name = "openssh"
    options = OpensshOptions

    def open_session(self, host: HostContext) -> OpensshSession:
        call = self._call(host)
        settings, config = resolve(host.inventory, host.key, call)
        session = OpensshSession(call, config, settings, host.pin)
        session.connect()
        return session

    def jump_hosts(self, host: HostContext) -> tuple[HostSettings, ...]:
        with suppress(NodefallError):  # reported where the host is used
            return resolve(host.inventory, host.key, self._call(host))[0].jumps
        return ()

    def known_keys(self, host: HostContext) -> frozenset[str]:
        with suppress(NodefallError):  # reported where the host is used
            settings, config = resolve(host.inventory, host.key, self._call(host))
            name = config.get("hostkeyalias") or known_hosts_name(settings)
            return frozenset().union(*(_known_keys(host, path).of(name) for path in known_hosts_files(config)))
        return frozenset()

    def local_problems(self, host: HostContext) -> tuple[NodefallError, ...]:
        try:
            return tuple(find_problems(self._call(host)))
        except NodefallError as error:
            return (error,)

    def sudo_user(self, host: HostContext) -> str:
        if host.host.user or host.inventory.defaults.user:
            settings = host_settings(host.inventory, host.key, host.local)
        elif host.key in host.inventory.hosts:
            settings, _ = resolve(host.inventory, host.key, self._call(host))
        else:
            raise Refused(
                f"the login of {host.key} comes from ssh_config", hint="set user in defaults, or list the hosts"
            )
        return settings.user if settings.sudo_prefix else ""

    def _call(self, host: HostContext) -> SshCall:
        options: OpensshOptions = self.options_of(host)
        destination = host.host.address or (host.key if options.destination == "name" else host.find_address())
        file = _trusted(host.secrets.path(options.config_file)) if options.config_file else None
        return ssh_call(host.inventory, host.key, destination or host.key, host.local, file)


def _trusted(path: Path) -> Path:
    """A configuration file that only this user may change, because it names programs. Raises Refused."""
    try:
        refuse_untrusted(path)
    except OSError as error:
        raise Refused(f"configFile {path} cannot be read: {error.strerror}", hint="check the inventory") from error
    return path


def _known_keys(host: HostContext, path: Path) -> KnownKeys:
    return host.shared.get(("known keys", path), lambda: KnownKeys(read_known_hosts(path)))


DRIVER = OpensshTransport()
