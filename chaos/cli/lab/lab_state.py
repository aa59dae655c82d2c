"""Where labs that stay are kept: a private directory each, below $XDG_STATE_HOME/nodefall/labs.

Its lock is held by the lab's process until that ends, however it ends: a directory whose lock is free is a dead lab's.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import msgspec

from chaos.clock import SystemClock
from chaos.lab.facade import LOCK, remove_directory
from chaos.model.errors import Refused, UsageError

DEFAULT_NAME = "lab"
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?")
_STATE, _INVENTORY = "lab.json", "inventory.json"
_TRIES, _PAUSE = 5, 0.05  # wall seconds; who looks whether a lab is alive holds its lock for a moment


class LabState(msgspec.Struct, kw_only=True, rename="camel"):
    """What is known of a lab. ``start_ticks`` and ``mark`` tell its process from one that gets its ID later."""

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
    out: str = ""  # a copy of the inventory, where it was asked for


class LabLockedError(Exception):
    """A process holds the lock."""


def check_name(name: str) -> str:
    """Raises UsageError unless ``name`` can name a lab."""
    if not _NAME.fullmatch(name):
        hint = "up to 32 lower-case letters, digits and dashes, as my-lab-2"
        raise UsageError(f"{name!r} is no name for a lab", hint=hint)
    return name


def labs_directory() -> Path:
    """Raises UsageError where there is no home."""
    told = Path(os.environ.get("XDG_STATE_HOME", ""))  # to be ignored if relative, says the XDG specification
    try:
        state = told if told.is_absolute() else Path.home() / ".local" / "state"
    except RuntimeError as error:
        raise UsageError("there is no home directory to keep labs in", hint="set XDG_STATE_HOME") from error
    return state / "nodefall" / "labs"


def lab_names() -> list[str]:
    """Of all labs that are kept, dead ones too. Raises Refused."""
    directory = labs_directory()
    try:
        return sorted(path.name for path in directory.iterdir() if _NAME.fullmatch(path.name))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise _unusable_directory(directory, error) from error


class LabDirectory:
    """The directory of the lab ``name``. Every method raises Refused for a directory that is not ours to use."""

    def __init__(self, name: str) -> None:
        self.name = check_name(name)
        self.path = labs_directory() / name

    @property
    def inventory(self) -> Path:
        return self.path / _INVENTORY

    @contextmanager
    def create(self) -> Iterator[int]:
        """An empty directory, and its lock, which is given back afterwards; who else has it by then keeps it."""
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = self._acquire_with_retry()
        except OSError as error:
            raise _unusable_directory(self.path, error) from error
        except LabLockedError:
            hint = f"nodefall lab status shows it, nodefall lab down {self.name} stops it, --name makes another one"
            raise Refused(f"there is a lab {self.name!r} already", hint=hint) from None
        try:
            self._clear()
            yield descriptor
        finally:
            os.close(descriptor)

    def is_alive(self) -> bool:
        """Whether a process holds the lock."""
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
            with suppress(OSError):  # made, but nothing was written into it
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
        """None if there is none yet, or none that can be read."""
        try:
            return msgspec.json.decode((self.path / _STATE).read_bytes(), type=LabState)
        except (OSError, msgspec.DecodeError):
            return None

    def write(self, state: LabState, inventory: str = "") -> None:
        """The state, and the inventory if there is one."""
        try:
            if inventory:
                _replace(self.inventory, inventory.encode())
            _replace(self.path / _STATE, msgspec.json.format(msgspec.json.encode(state), indent=2) + b"\n")
        except OSError as error:
            raise _unusable_directory(self.path, error) from error

    def inventory_copy(self) -> tuple[Path, str] | None:
        """The copy of the inventory that was asked for, as it was written."""
        state = self.state()
        if state is None or not state.out:
            return None
        try:
            return Path(state.out), self.inventory.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return None

    def _clear(self) -> None:
        """The lock is ours."""
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
        """The lock, as a descriptor that holds it. Raises Held, Refused, OSError."""
        flags = os.O_RDWR | os.O_NOFOLLOW | (os.O_CREAT if create else 0)
        while True:
            if create:
                self.path.mkdir(mode=0o700, exist_ok=True)
            self._check()
            try:
                descriptor = os.open(self.path / LOCK, flags, 0o600)
            except FileNotFoundError:
                if create:  # removed meanwhile
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
            os.close(descriptor)  # its holder has removed it

    def _check(self) -> None:
        """Raises Refused for what no lab of this user made."""
        status = self.path.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
            why = "is not a directory of this user"
        elif status.st_mode & 0o077:
            why = "is open to others, and would hold keys"
        elif any(self.path.iterdir()) and not (self.path / LOCK).exists():
            why = "holds files that are no lab's"
        else:
            return
        raise Refused(f"{self.path} {why}", hint="look at it and move it away, or use another name")


def remove_copy(copy: tuple[Path, str] | None) -> None:
    """Remove a copy of an inventory if it is still what was written: whatever else is there is not ours."""
    if copy:
        path, text = copy
        with suppress(OSError, UnicodeDecodeError):
            if path.read_text(encoding="utf-8") == text:
                path.unlink()


def _replace(path: Path, data: bytes) -> None:
    """All of it or nothing; private, as the directory is."""
    new = path.with_name(path.name + ".new")
    new.write_bytes(data)
    new.replace(path)


def _unusable_directory(path: Path, error: OSError) -> Refused:
    hint = "labs are kept below $XDG_STATE_HOME/nodefall, by default ~/.local/state/nodefall"
    return Refused(f"{error.filename or path} cannot be used: {error.strerror}", hint=hint)
