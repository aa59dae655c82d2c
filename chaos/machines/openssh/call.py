"""How nodefall calls ssh for a host, and the configuration of ssh for that host (``ssh -G``)."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chaos.core.duration import parse_duration
from chaos.core.errors import Refused
from chaos.core.inventory import Host, Inventory
from chaos.core.programs import TooMuchOutput, run_bounded
from chaos.core.text import printable
from chaos.machines.local import refuse_unsafe_key, refuse_untrusted
from chaos.machines.sessions.settings import CONNECT_TIMEOUT, HostSettings, LocalUser, jump_names

PROGRAM = "ssh"
_TIMEOUT = 10.0  # seconds of wall time: `Match exec` runs programs
_MAX_OUTPUT = 1 << 20  # bytes that `ssh -G` may print
_MAX_JUMPS = 8  # a jump host may have another one in the configuration, and so on
_HOP = re.compile(r"(?:ssh://)?(?:(?P<user>.+)@)?(?P<host>\[[^]]+\]|[^:]+)(?::(?P<port>\d+))?/?")
_DESTINATION = re.compile(r"[\w:][\w.:-]*(%[\w.-]+)?", re.ASCII)
_NONE = ("", "none")


@dataclass(frozen=True, slots=True)
class SshCall:
    """A destination as ssh has it, with the ``arguments`` before it: keys of the inventory, which precede its files."""

    destination: str
    arguments: tuple[str, ...] = ()

    def argv(self, *more: str) -> list[str]:
        """The command line; ``more`` precedes the arguments."""
        return [PROGRAM, *more, *self.arguments, "--", self.destination]

    def __str__(self) -> str:
        """As a person would type it, to try the login."""
        return f"{shlex.join([PROGRAM, *self.arguments, self.destination])} true"


class SshConfig:
    """The options of ssh for a destination, as ``ssh -G`` prints them, by their lower case names."""

    def __init__(self, values: Mapping[str, tuple[str, ...]]) -> None:
        self._values = values

    def get(self, key: str) -> str:
        """The (first) value of an option; "" if it is not set."""
        value = next(iter(self._values.get(key, ())), "")
        return "" if value in _NONE else value

    def all(self, key: str) -> tuple[str, ...]:
        """Every value, also of an option that is a list of words."""
        return tuple(word for value in self._values.get(key, ()) for word in value.split() if word not in _NONE)


def read_config(call: SshCall, *options: str) -> SshConfig:
    """Ask ssh, which connects nowhere. Raises Refused for a configuration that it does not accept.

    ``options`` precede the arguments of the call.
    """
    try:
        done = run_bounded(call.argv("-G", *options), _TIMEOUT, _MAX_OUTPUT)
    except subprocess.TimeoutExpired as error:
        raise Refused(
            f"`ssh -G {call.destination}` did not end in {_TIMEOUT:g} s", hint="see Match exec in it"
        ) from error
    except TooMuchOutput as error:
        raise Refused(f"`ssh -G {call.destination}` failed: {error}", hint="correct its configuration") from error
    except OSError as error:
        raise not_installed(error) from error
    if done.returncode:
        why = printable(done.stderr.decode("utf-8", "replace"), 300) or f"exit code {done.returncode}"
        raise Refused(f"ssh does not accept its configuration for {call.destination}: {why}", hint="correct it")
    values: dict[str, tuple[str, ...]] = {}
    for line in done.stdout.decode("utf-8", "replace").splitlines():
        key, _, value = line.partition(" ")
        values[key] = (*values.get(key, ()), value)
    return SshConfig(values)


def known_hosts_files(config: SshConfig) -> tuple[Path, ...]:
    """The files with known hosts, those of the user first."""
    texts = (text for key in ("userknownhostsfile", "globalknownhostsfile") for text in config.all(key))
    return tuple(Path(text).expanduser() for text in texts)


def not_installed(error: OSError) -> Refused:
    """Error of a program that cannot be started."""
    return Refused(
        f"program {PROGRAM} cannot be run: {error.strerror}", hint="install openssh-client, or use transport: ssh"
    )


def ssh_call(inventory: Inventory, key: str, destination: str, local: LocalUser, config_file: Path | None) -> SshCall:
    """The call for the host ``key``: what the inventory gives is an argument, all else is left to ssh.

    Raises Refused for a destination that a shell might interpret: ssh puts it into the user's ProxyCommand.
    """
    if not _DESTINATION.fullmatch(destination):
        why = "it is no host name and no address"
        raise Refused(
            f"{key} cannot be reached by ssh as {printable(destination, 80)!r}: {why}", hint="set its address"
        )

    def given(name: str) -> Any:
        own = getattr(inventory.hosts.get(key, Host()), name)
        return getattr(inventory.defaults, name) if own is None else own

    if config_file is None:
        _trusted(_user_config(local), refuse_untrusted)
    arguments = ["-F", str(config_file)] if config_file else []
    arguments += ["-o", f"ConnectTimeout={max(round(connect_timeout(inventory, key)), 1)}"]
    for option, value in (("-l", given("user")), ("-p", given("port"))):
        arguments += [option, str(value)] if value else []
    if identity := given("identity_file"):
        arguments += ["-i", str(_trusted(local.path(identity), refuse_unsafe_key))]
    if known_hosts := given("known_hosts"):
        arguments += ["-o", f'UserKnownHostsFile="{_trusted(local.path(known_hosts), refuse_untrusted)}"']
    if given("agent") is False:
        arguments += ["-o", "IdentityAgent=none"]
    if given("proxy_jump") is not None:
        jumps = ",".join(_jump(inventory, name) for name in jump_names(inventory, key))
        arguments += ["-J", jumps or "none"]
    return SshCall(destination, tuple(arguments))


def _trusted(path: Path, refuse: Callable[[Path], None]) -> Path:
    """The path of a file that others cannot change, or that ssh itself reports as unreadable. Raises Refused."""
    with suppress(OSError):
        refuse(path)
    return path


def _user_config(local: LocalUser) -> Path:
    """Where ssh looks for it: not in $HOME. It checks the mode of the file, and nothing above it."""
    import pwd  # noqa: PLC0415 - absent on Windows

    try:
        home = pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:  # ssh itself refuses such a user
        return local.home / ".ssh" / "config"
    return Path(home, ".ssh", "config")


def connect_timeout(inventory: Inventory, key: str) -> float:
    """Seconds, by the inventory."""
    own = inventory.hosts.get(key, Host()).connect_timeout
    return parse_duration(own or inventory.defaults.connect_timeout or CONNECT_TIMEOUT)


def _jump(inventory: Inventory, name: str) -> str:
    """A jump host as -J has it: a host of the inventory by its address, any other as it is written."""
    host = inventory.hosts.get(name)
    if host is None:
        return name
    address = host.address or name
    user = f"{host.user}@" if host.user else ""
    port = f":{host.port}" if host.port else ""
    return f"{user}[{address}]{port}" if ":" in address else f"{user}{address}{port}"


def resolve(inventory: Inventory, key: str, call: SshCall) -> tuple[HostSettings, SshConfig]:
    """Where ssh would connect to, and as whom. Raises Refused."""
    config = read_config(call)
    own = inventory.hosts.get(key, Host()).sudo
    sudo = inventory.defaults.sudo if own is None else own
    settings = HostSettings(
        name=key,
        address=config.get("hostname"),
        user=config.get("user"),
        known_hosts=Path(),  # ssh reads its own
        port=int(config.get("port") or 22),
        sudo=sudo is not False,
        jumps=tuple(_jumps(call, config, _MAX_JUMPS)),
        connect_timeout=connect_timeout(inventory, key),
    )
    return settings, config


def _jumps(call: SshCall, config: SshConfig, depth: int) -> Iterator[HostSettings]:
    """The jump hosts in the order of the path, as ssh resolves each; none for a ProxyCommand."""
    files = call.arguments[:2] if call.arguments[:1] == ("-F",) else ()
    for text in filter(None, config.get("proxyjump").split(",") if depth else []):
        found = _HOP.fullmatch(text)
        if not found:
            continue
        login = ("-l", found["user"]) if found["user"] else ()
        port = ("-p", found["port"]) if found["port"] else ()
        hop = SshCall(found["host"].strip("[]"), (*files, *login, *port))
        of_hop = read_config(hop)
        yield from _jumps(hop, of_hop, depth - 1)
        yield HostSettings(
            hop.destination, of_hop.get("hostname"), of_hop.get("user"), Path(), int(of_hop.get("port") or 22)
        )
