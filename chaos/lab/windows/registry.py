"""Registry of one Windows machine, on disk: keys and values, whose names ignore case."""

from __future__ import annotations

from dataclasses import dataclass

_ROOT = "HKEY_LOCAL_MACHINE"
CONTROL = r"HKLM\SYSTEM\CurrentControlSet\Control"
CRASH_CONTROL = CONTROL + r"\CrashControl"
SERVICES = r"HKLM\SYSTEM\CurrentControlSet\Services"
PREFETCH = CONTROL + r"\Session Manager\Memory Management\PrefetchParameters"

Data = str | int | tuple[str, ...]


class KeyPathError(ValueError):
    """The path does not begin with a known root."""


@dataclass(frozen=True, slots=True)
class Value:
    """``data``: a number for REG_DWORD and REG_QWORD, a tuple for REG_MULTI_SZ, otherwise text."""

    name: str
    kind: str
    data: Data


def full_path(path: str) -> str:
    """Path with the long name of its root, which is HKLM. Raises KeyPathError."""
    root, _, rest = path.partition("\\")
    if root.upper() not in ("HKLM", _ROOT) or not rest:
        raise KeyPathError(path)
    return f"{_ROOT}\\{rest}"


class WindowsRegistry:
    """Values by key and name. Paths may begin with a short or a long root name."""

    def __init__(self) -> None:
        self._keys: dict[str, tuple[str, dict[str, Value]]] = {}  # by lower-case path: the path as created, the values

    def set(self, path: str, name: str, kind: str, data: Data) -> None:
        """Write a value and create its key. Raises KeyPathError."""
        self.create(path)
        self._keys[full_path(path).lower()][1][name.lower()] = Value(name, kind, data)

    def create(self, path: str) -> None:
        """Create a key. Raises KeyPathError."""
        full = full_path(path)
        self._keys.setdefault(full.lower(), (full, {}))

    def value(self, path: str, name: str) -> Value | None:
        """Read one value. Raises KeyPathError."""
        _, values = self._keys.get(full_path(path).lower(), ("", {}))
        return values.get(name.lower())

    def number(self, path: str, name: str) -> int | None:
        """Read a number, None if the value does not exist or is not a number."""
        found = self.value(path, name)
        return found.data if found and isinstance(found.data, int) else None

    def strings(self, path: str, name: str) -> tuple[str, ...] | None:
        """Read a REG_MULTI_SZ value, None if there is none."""
        found = self.value(path, name)
        return found.data if found and isinstance(found.data, tuple) else None

    def text(self, path: str, name: str) -> str:
        """Read a text, empty if there is none."""
        found = self.value(path, name)
        return found.data if found and isinstance(found.data, str) else ""

    def values(self, path: str) -> list[Value] | None:
        """All values of a key, None if the key does not exist. Raises KeyPathError."""
        found = self._keys.get(full_path(path).lower())
        return None if found is None else list(found[1].values())

    def display_path(self, path: str) -> str:
        """Path of an existing key with the case of its creation. Raises KeyPathError."""
        full = full_path(path)
        return self._keys.get(full.lower(), (full, {}))[0]

    def delete_key(self, path: str) -> None:
        """Delete a key with its values. Raises KeyPathError."""
        self._keys.pop(full_path(path).lower(), None)
