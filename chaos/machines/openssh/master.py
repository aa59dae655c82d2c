"""One connection of ssh to a host (ControlMaster), which its clients share.

The process that ssh leaves in the background lives while this process holds a connection to its socket: whichever of
the two dies, the other one learns it at once, and a master whose nodefall was killed ends by itself (ControlPersist).
"""

from __future__ import annotations

import errno
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path

from chaos.core.errors import AnotherMachine, NodefallError, Refused, Unreachable
from chaos.core.text import printable
from chaos.machines.openssh.call import PROGRAM, SshCall, SshConfig, not_installed
from chaos.machines.sessions.host_keys import HostKeyPin
from chaos.machines.sessions.settings import HostSettings

PERSIST = 15  # seconds that a master outlives nodefall
_START_FACTOR = 3  # times the connect timeout: through jump hosts, and until the login is over
_EXIT_TIMEOUT = 5.0  # seconds of wall time
_MAX_PATH = 80  # bytes; a socket's path has 104 on some systems, and ssh appends 17 while it makes one
_SUFFIX = ".0123456789abcdef"  # as long as what ssh appends
_SOCKET, _LOG = "s", "log"  # in the folder of a master
_MAX_SAID = 600  # characters that errors quote
# What precedes the user's configuration: nothing is asked, no key is accepted on first use, nothing but commands runs.
OPTIONS = (
    *("BatchMode=yes", "StrictHostKeyChecking=yes", "NoHostAuthenticationForLocalhost=no", "UpdateHostKeys=no"),
    *("ControlMaster=yes", f"ControlPersist={PERSIST}", "ServerAliveInterval=10", "ServerAliveCountMax=3"),
    *("ClearAllForwardings=yes", "ForwardAgent=no", "ForwardX11=no", "Tunnel=no", "PermitLocalCommand=no"),
    *("RemoteCommand=none", "RequestTTY=no", "AddKeysToAgent=no", "FingerprintHash=sha256", "VisualHostKey=no"),
)
# Of the log alone, which only ssh itself writes: a banner and programs between write to stderr.
_HOST_KEY = re.compile(r"^debug1: Server host (?:key|certificate): (\S+) (SHA256:[A-Za-z0-9+/]+)", re.MULTILINE)
_NOT_SAID = re.compile(r"debug\d: |OpenSSH_|Authenticated to |\s*$|@+\s*$")
_CERTIFICATE = "-cert-v01@openssh.com"
_UNVERIFIED = "Host key verification failed"
_CHANGED = "REMOTE HOST IDENTIFICATION HAS CHANGED"
_REVOKED = ("REVOKED HOST KEY", "is revoked")


class Master:
    """A connection that is open, to a host whose key has been verified. Thread safe."""

    def __init__(self, folder: Path, watch: socket.socket) -> None:
        self._folder, self._watch = folder, watch

    @property
    def is_alive(self) -> bool:
        """Whether the process runs, which ends with its connection, and its socket is where clients look for it."""
        return not self.wait_end(0.0) and (self._folder / _SOCKET).exists()

    def wait_end(self, seconds: float) -> bool:
        """Wait until the process has ended, at most ``seconds``; whether it has."""
        poll = select.poll()
        try:
            poll.register(self._watch, select.POLLIN)
            return bool(poll.poll(seconds * 1000)) and not self._watch.recv(1)  # its greeting was read
        except (OSError, ValueError):  # closed meanwhile
            return True

    def client_argv(self, *more: str) -> list[str]:
        """A program that runs a command on the connection, and never opens another one: that is what ProxyCommand is.

        It reads no configuration. What the master has logged is dropped, as it would fill the disk in a long run.
        """
        _drop_log(self._folder)
        return _client_argv(self._folder, *more)

    def close(self) -> None:
        """End the process with its connection. Programs on the host continue."""
        _exit(self._folder)
        self._watch.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def start_master(call: SshCall, config: SshConfig, settings: HostSettings, pin: HostKeyPin) -> Master:
    """Connect, verify the host and log in. Raises Unreachable, or Refused for a host that is not trusted."""
    with ExitStack() as stack:
        folder = _private_folder()
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        log, stderr = folder / _LOG, folder / "stderr"
        options = [f"-o{option}" for option in (*OPTIONS, *_key_types(config, pin.type))]
        argv = call.argv("-v", "-E", str(log), "-S", _socket(folder), "-N", "-T", *options)
        code = _connect(argv, stderr, _START_FACTOR * settings.connect_timeout)
        text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
        key = _presented_key(text)
        if code != 0:
            raise _error(call, settings, key, code, _said(text), _said(stderr.read_text(errors="replace")))
        _drop_log(folder)  # a ProxyCommand in it may have secrets
        watch = stack.enter_context(socket.socket(socket.AF_UNIX))
        try:
            watch.connect(str(folder / _SOCKET))
            watch.settimeout(_EXIT_TIMEOUT)
            watch.recv(64)  # its greeting
        except OSError as error:
            raise Unreachable(f"ssh to {settings.label} ended after the login: {error}") from error
        stack.callback(_exit, folder)
        _verify(key, call, settings, pin)
        stack.pop_all()
        return Master(folder, watch)


def _verify(key: str, call: SshCall, settings: HostSettings, pin: HostKeyPin) -> None:
    """Raise Refused if the machine does not match the pin. ssh has already verified the key with known_hosts."""
    if not key:
        raise Refused(f"ssh did not report the host key of {settings.label}", hint=f"run it by hand: {call}")
    pin.verify(key, settings.label)


def _private_folder() -> Path:
    """A directory that only this user can read, with a path that is short enough for a socket. Raises Refused."""
    try:
        _refuse_place_of_others(Path(tempfile.gettempdir()))
        folder = Path(tempfile.mkdtemp(prefix="nodefall-ssh-"))
        if len(os.fsencode(folder)) <= _MAX_PATH:
            return folder
        folder.rmdir()
        return Path(tempfile.mkdtemp(prefix="nodefall-ssh-", dir="/tmp"))
    except OSError as error:
        raise _no_socket(error) from error


def _refuse_place_of_others(place: Path) -> None:
    """Its owner could put another socket there, and answer in the place of a host. Raises OSError."""
    if (owner := place.stat().st_uid) not in (0, os.geteuid()):
        raise OSError(errno.EPERM, f"it belongs to user {owner}, who could replace the socket", str(place))


def check_control_socket() -> None:
    """Make a socket where a master makes one, and remove it. Raises Refused."""
    folder = _private_folder()
    try:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.bind(str(folder / (_SOCKET + _SUFFIX)))
    except OSError as error:
        raise _no_socket(error) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _no_socket(error: OSError) -> Refused:
    where = printable(str(error.filename or tempfile.gettempdir()), _MAX_SAID)
    return Refused(
        f"ssh cannot have a control socket in {where}: {error.strerror or error}",
        hint="set TMPDIR to a directory that this user can write to, on a local file system",
    )


def _socket(folder: Path) -> str:
    """ControlPath, in which ssh replaces what follows a percent sign."""
    return str(folder / _SOCKET).replace("%", "%%")


def _key_types(config: SshConfig, pinned: str) -> list[str]:
    """Prefer the type of the pinned key to the order of known_hosts, which may have changed."""
    usable = config.get("hostkeyalgorithms").split(",")
    names = ("rsa-sha2-512", "rsa-sha2-256", "ssh-rsa") if pinned == "ssh-rsa" else (pinned,)
    preferred = [name for name in usable if name.removesuffix(_CERTIFICATE) in names]
    rest = [name for name in usable if name not in preferred]
    return [f"HostKeyAlgorithms={','.join([*preferred, *rest])}"] if preferred else []


def _connect(argv: list[str], stderr: Path, timeout: float) -> int | None:
    """Run ssh until it has logged in and left its master in the background; its exit code, None after ``timeout``."""
    with stderr.open("wb") as output:
        try:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=output,
                start_new_session=True,  # Ctrl-C is for nodefall alone
                env={**os.environ, "SSH_ASKPASS_REQUIRE": "never"},
            )
        except OSError as error:
            raise not_installed(error) from error
    try:
        return process.wait(timeout)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)  # with its ProxyCommand
            process.wait()


def _drop_log(folder: Path) -> None:
    with suppress(OSError):  # someone has removed it
        os.truncate(folder / _LOG, 0)  # ssh appends to it


def _client_argv(folder: Path, *more: str) -> list[str]:
    return [PROGRAM, "-F", "none", "-S", _socket(folder), "-o", "ProxyCommand=false", "-T", *more]


def _exit(folder: Path) -> None:
    argv = _client_argv(folder, "-O", "exit", "--", "host")
    with suppress(subprocess.TimeoutExpired, OSError):  # it ends by itself soon after its socket is closed
        subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=_EXIT_TIMEOUT, check=False)


def _presented_key(log: str) -> str:
    """Type and fingerprint of the host's key, as a pin has it; "" if there was none yet. That of a certificate, too."""
    found = _HOST_KEY.search(log)
    return f"{found[1].removesuffix(_CERTIFICATE)} {found[2]}" if found else ""


def _said(text: str) -> str:
    """The output that a person would have read."""
    return "\n".join(line for line in text.splitlines() if not _NOT_SAID.match(line))


def _error(call: SshCall, settings: HostSettings, key: str, code: int | None, log: str, stderr: str) -> NodefallError:
    said = printable("\n".join(filter(None, (stderr, log))), _MAX_SAID)
    if code is None:
        limit = f"{_START_FACTOR * settings.connect_timeout:g}"
        said = f"no login within {limit} s" + (f"; it said {said!r}" if said else "")
        return Unreachable(f"ssh to {settings.label} failed: {said}", hint=_by_hand(call))
    if _UNVERIFIED in log and key:
        if any(word in log for word in _REVOKED):
            return Refused(f"the host key of {settings.label} is revoked: {key}: {said}", hint="create a new key")
        if _CHANGED in log:
            hint = f"{_compare(key)}; if the host was reinstalled, replace it in known_hosts"
            why = f"the host key of {settings.label} has changed: it presents {key}; the connection may be intercepted"
            return AnotherMachine(f"{why}: {said}", hint=hint)
        hint = f"{_compare(key)}; if they are equal, add it to known_hosts: ssh accepts none on first use here"
        return Refused(f"the host key of {settings.label} is not known to ssh: {key}: {said}", hint=hint)
    return Unreachable(f"ssh to {settings.label} failed: {said or f'exit code {code}'}", hint=_by_hand(call))


def _by_hand(call: SshCall) -> str:
    return f"run it by hand, as this user: {call}"


def _compare(key: str) -> str:
    kind = key.partition(" ")[0].removeprefix("ssh-").split("-")[0]
    return f"compare it with `ssh-keygen -lf /etc/ssh/ssh_host_{kind}_key.pub` on the host's console"
