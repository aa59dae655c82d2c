"""The directories of labs, a private one for each below $XDG_STATE_HOME/nodefall/labs, and their processes.

The process of a lab holds the lock of its directory until it ends. A directory with a free lock is that of a dead lab.
"""

from __future__ import annotations

import fcntl
import os
import re
import selectors
import signal
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import msgspec

from chaos.app.labs import MARK
from chaos.core.clock import SystemClock
from chaos.core.errors import Refused, UsageError
from chaos.core.trusted_files import refuse_untrusted_file
from chaos.lab.facade import LOCK, remove_directory

DEFAULT_NAME = "lab"
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?")
_STATE, _INVENTORY = "lab.json", "inventory.json"
_TRIES, _PAUSE = 5, 0.05  # wall seconds; is_alive holds the lock for a moment
_TERMINATION_TIMEOUT = 10.0  # wall seconds after SIGTERM


class LabState(msgspec.Struct, kw_only=True, rename="camel"):
    """A lab as stored in lab.json. ``start_ticks`` and ``mark`` identify its process, whose ID may be reused."""

    name: str
    pid: int
    start_ticks: int
    mark: str
    since: float
    workers: int
    kubernetes: str
    seed: int
    lockstep: bool
    speed: float
    breakages: list[str] = []
    ready: bool = False
    api_server: str = ""
    kubeconfig: str = ""
    ca_file: str = ""
    out: str = ""  # path of a copy of the inventory


class LabLockedError(Exception):
    """Another process holds the lock."""


def check_name(name: str) -> str:
    """``name``, if it is valid for a lab. Raises UsageError."""
    if not _NAME.fullmatch(name):
        hint = "use up to 32 lower-case letters, digits and dashes, as my-lab-2"
        raise UsageError(f"invalid name of a lab: {name!r}", hint=hint)
    return name


def labs_directory() -> Path:
    """The parent of all lab directories. Raises UsageError if there is no home directory."""
    xdg_state_home = Path(os.environ.get("XDG_STATE_HOME", ""))  # the XDG specification ignores relative paths
    try:
        state = xdg_state_home if xdg_state_home.is_absolute() else Path.home() / ".local" / "state"
    except RuntimeError as error:
        raise UsageError("no directory for labs: there is no home directory", hint="set XDG_STATE_HOME") from error
    return state / "nodefall" / "labs"


def lab_names() -> list[str]:
    """The names of all labs, including dead ones. Raises Refused."""
    directory = labs_directory()
    try:
        return sorted(path.name for path in directory.iterdir() if _NAME.fullmatch(path.name))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise _unusable_directory(directory, error) from error


class LabDirectory:
    """The directory of the lab ``name``. Every method raises Refused if the directory is unusable."""

    def __init__(self, name: str) -> None:
        self.name = check_name(name)
        self.path = labs_directory() / name

    @property
    def inventory(self) -> Path:
        return self.path / _INVENTORY

    @contextmanager
    def create(self) -> Iterator[int]:
        """Create an empty directory and hold its lock for the block, as a descriptor that children can inherit."""
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            refuse_untrusted_file(self.path.parent)
            descriptor = self._acquire_with_retry()
        except OSError as error:
            raise _unusable_directory(self.path, error) from error
        except LabLockedError:
            hint = f"stop it with nodefall lab down {self.name}, or choose another --name"
            raise Refused(f"the lab {self.name!r} already exists", hint=hint) from None
        try:
            self._clear()
            yield descriptor
        finally:
            os.close(descriptor)

    def is_alive(self) -> bool:
        """Whether a process holds the lock of the directory."""
        try:
            os.close(self._acquire(create=False))
        except FileNotFoundError:
            return False
        except LabLockedError:
            return True
        except OSError as error:
            raise _unusable_directory(self.path, error) from error
        return False

    def remove(self) -> bool:
        """Remove the directory, and the copy of its inventory; False if a process holds the lock."""
        try:
            descriptor = self._acquire(create=False)
        except FileNotFoundError:
            with suppress(OSError):  # created, but empty
                self.path.rmdir()
            return True
        except LabLockedError:
            return False
        except OSError as error:
            raise _unusable_directory(self.path, error) from error
        try:
            self._clear()
            remove_directory(self.path)
        finally:
            os.close(descriptor)
        return True

    def state(self) -> LabState | None:
        """The contents of lab.json, None if it is missing or unreadable."""
        try:
            return msgspec.json.decode((self.path / _STATE).read_bytes(), type=LabState)
        except (OSError, msgspec.DecodeError):
            return None

    def write(self, state: LabState, inventory: str = "") -> None:
        """Write the state, and the inventory unless it is empty."""
        try:
            if inventory:
                _replace(self.inventory, inventory.encode())
            _replace(self.path / _STATE, msgspec.json.format(msgspec.json.encode(state), indent=2) + b"\n")
        except OSError as error:
            raise _unusable_directory(self.path, error) from error

    def inventory_copy(self) -> tuple[Path, str] | None:
        """Path and original text of the copy of the inventory, None if there is none."""
        state = self.state()
        if state is None or not state.out:
            return None
        try:
            return Path(state.out), self.inventory.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return None

    def _clear(self) -> None:
        """Remove all files but the lock, which must be held."""
        remove_copy(self.inventory_copy())
        try:
            for path in self.path.iterdir():
                if path.name != LOCK:
                    path.unlink()
        except OSError as error:
            raise _unusable_directory(self.path, error) from error

    def _acquire_with_retry(self) -> int:
        with closing(SystemClock()) as clock:
            for _ in range(_TRIES - 1):
                with suppress(LabLockedError):
                    return self._acquire(create=True)
                clock.sleep(_PAUSE)
        return self._acquire(create=True)

    def _acquire(self, *, create: bool) -> int:
        """A descriptor that holds the lock. Raises LabLockedError, Refused, OSError."""
        flags = os.O_RDWR | os.O_NOFOLLOW | (os.O_CREAT if create else 0)
        while True:
            if create:
                self.path.mkdir(mode=0o700, exist_ok=True)
            self._check()
            try:
                descriptor = os.open(self.path / LOCK, flags, 0o600)
            except FileNotFoundError:
                if create:  # the directory was removed meanwhile
                    continue
                raise
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.path.samestat(os.fstat(descriptor), (self.path / LOCK).stat()):
                    return descriptor
            except BlockingIOError:
                os.close(descriptor)
                raise LabLockedError from None
            except FileNotFoundError:
                pass
            os.close(descriptor)  # the previous holder has removed the file

    def _check(self) -> None:
        """Raises Refused if the directory was not created by a lab of this user."""
        status = self.path.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
            reason = "it is not a directory of this user"
        elif status.st_mode & 0o077:
            reason = "other users can access it, and it would contain keys"
        elif any(self.path.iterdir()) and not (self.path / LOCK).exists():
            reason = "it contains files that no lab has written"
        else:
            return
        raise Refused(f"cannot use {self.path}: {reason}", hint="move it away, or use another name")


def remove_copy(copy: tuple[Path, str] | None) -> None:
    """Remove a copy of an inventory unless its text was changed."""
    if copy:
        path, text = copy
        with suppress(OSError, UnicodeDecodeError):
            if path.read_text(encoding="utf-8") == text:
                path.unlink()


def _replace(path: Path, data: bytes) -> None:
    """Write a file atomically."""
    new = path.with_name(path.name + ".new")
    new.write_bytes(data)
    new.replace(path)


def _unusable_directory(path: Path, error: OSError) -> Refused:
    hint = "check $XDG_STATE_HOME/nodefall, by default ~/.local/state/nodefall"
    return Refused(f"cannot use {error.filename or path}: {error.strerror}", hint=hint)


def start_ticks(pid: int) -> int:
    """The start time of a process in clock ticks since boot (proc_pid_stat(5), field 22). Raises OSError."""
    return int(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19])


@contextmanager
def find(state: LabState) -> Iterator[int | None]:
    """A pidfd of the lab's process; None if it has ended or its ID was reused."""
    descriptor = None
    try:
        with suppress(OSError):
            descriptor = os.pidfd_open(state.pid)
        yield descriptor if descriptor is not None and _is_lab_process(state) else None
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _is_lab_process(state: LabState) -> bool:
    try:
        marked = f"{MARK}={state.mark}".encode() in Path(f"/proc/{state.pid}/environ").read_bytes().split(b"\0")
        return marked and start_ticks(state.pid) == state.start_ticks
    except (OSError, ValueError):  # it has just ended, or belongs to another user
        return False


def terminate(descriptor: int) -> bool:
    """Send SIGTERM, then SIGKILL; False if the process is still alive."""
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)  # readable once it has ended
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(descriptor, number)
                signal.pidfd_send_signal(descriptor, signal.SIGCONT)  # a stopped process does not handle signals
            if selector.select(_TERMINATION_TIMEOUT):
                return True
    return False
