"""What on this machine keeps ssh from a host: its program, its configuration and its control socket."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator

from chaos.core.errors import NodefallError, Refused
from chaos.core.text import printable
from chaos.machines.openssh.call import PROGRAM, SshCall, SshConfig, known_hosts_files, not_installed, read_config
from chaos.machines.openssh.master import OPTIONS, check_control_socket

_OLDEST = (7, 3)  # the first with -J
_VERSION = re.compile(r"OpenSSH_(?:for_Windows_)?(\d+)\.(\d+)")
_TIMEOUT = 10.0  # seconds of wall time
_YES = ("yes", "true")  # as versions of `ssh -G` print it
_HELD = {"batchmode": "BatchMode", "stricthostkeychecking": "StrictHostKeyChecking"}


def find_problems(call: SshCall) -> Iterator[NodefallError]:
    """Each reason why no connection can be made, with a hint; connects nowhere."""
    try:
        yield from _of_program()
        yield from _of_config(call, read_config(call, *(f"-o{option}" for option in OPTIONS)))
        check_control_socket()
    except NodefallError as error:
        yield error


def _of_program() -> Iterator[NodefallError]:
    try:
        done = subprocess.run(
            [PROGRAM, "-V"], stdin=subprocess.DEVNULL, capture_output=True, timeout=_TIMEOUT, check=False
        )
    except OSError as error:
        raise not_installed(error) from error
    except subprocess.TimeoutExpired as error:
        raise Refused(f"`{PROGRAM} -V` did not end in {_TIMEOUT:g} s", hint="see which program it is") from error
    said = (done.stderr + done.stdout).decode("utf-8", "replace")
    found = _VERSION.search(said)
    if not found:
        why = f"program {PROGRAM} is not OpenSSH: it says {printable(said.strip(), 80)!r}"
        yield Refused(why, hint="install openssh-client, or use transport: ssh")
    elif (int(found[1]), int(found[2])) < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        why = f"program {PROGRAM} is OpenSSH {found[1]}.{found[2]}; transport openssh needs {oldest}"
        yield Refused(why, hint="update openssh-client, or use transport: ssh")


def _of_config(call: SshCall, config: SshConfig) -> Iterator[NodefallError]:
    for key, name in _HELD.items():
        if config.get(key) not in _YES:
            why = f"ssh ignores {name}=yes for {call.destination}: `ssh -G` says {config.get(key) or 'nothing'}"
            yield Refused(why, hint=f"a program before ssh in PATH sets another {name}: remove that")
    files = known_hosts_files(config)
    if not any(path.is_file() and path.stat().st_size for path in files) and not config.get("knownhostscommand"):
        why = f"ssh knows no host key for {call.destination}: {', '.join(map(str, files)) or 'no known_hosts'} has none"
        yield Refused(why, hint="add the host's key to known_hosts: ssh accepts none on first use here")
