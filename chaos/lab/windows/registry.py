"""Registry of one Windows machine, on disk: keys and values, whose names ignore case."""

from __future__ import annotations

from dataclasses import dataclass

ROOTS = {"HKLM": "HKEY_LOCAL_MACHINE", "HKCU": "HKEY_CURRENT_USER", "HKU": "HKEY_USERS", "HKCR": "HKEY_CLASSES_ROOT"}
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
    """Path with the long name of its root and without a trailing backslash. Raises KeyPathError."""
    root, _, rest = path.strip("\\").partition("\\")
    long = ROOTS.get(root.upper(), root.upper())
    if long not in ROOTS.values():
        raise KeyPathError(path)
    return f"{long}\\{rest}" if rest else long


class WindowsRegistry:
    """Values by key and name. Paths may begin with a short or a long root name."""

    def __init__(self) -> None:
        self._keys: dict[str, tuple[str, dict[str, Value]]] = {}  # by lower-case path: the path as created, the values

    def set(self, path: str, name: str, kind: str, data: Data) -> None:
        """Write a value and create its key. Raises KeyPathError."""
        self.create(path)
        self._keys[full_path(path).lower()][1][name.lower()] = Value(name, kind, data)

    def create(self, path: str) -> None:
        """Create a key and its parents. Raises KeyPathError."""
        full = full_path(path)
        parts = full.split("\\")
        for end in range(1, len(parts) + 1):
            part = "\\".join(parts[:end])
            self._keys.setdefault(part.lower(), (part, {}))

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

    def delete_value(self, path: str, name: str) -> bool:
        """Delete a value; whether it existed. Raises KeyPathError."""
        _, values = self._keys.get(full_path(path).lower(), ("", {}))
        return values.pop(name.lower(), None) is not None

    def delete_key(self, path: str) -> bool:
        """Delete a key and all below; whether it existed. Raises KeyPathError."""
        lower = full_path(path).lower()
        doomed = [key for key in self._keys if key == lower or key.startswith(lower + "\\")]
        for key in doomed:
            del self._keys[key]
        return bool(doomed)
