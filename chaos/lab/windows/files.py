r"""Files of a Windows machine by path. ``C:\var\lib\kubelet`` is what Go programs call ``/var/lib/kubelet``."""

from __future__ import annotations


def _key(path: str) -> str:
    r"""Key in Machine.files: the path from the root of drive C, with slashes; other drives keep their letter."""
    text = path.replace("\\", "/")
    return text[2:] if text[:2].lower() == "c:" else text


def _find(files: dict[str, str], path: str) -> str:
    """The key in the case of its first write; names ignore case."""
    wanted = _key(path).lower()
    return next((key for key in files if key.lower() == wanted), _key(path))


def read_file(files: dict[str, str], path: str) -> str | None:
    """Content of a file, None if it does not exist."""
    return files.get(_find(files, path))


def write_file(files: dict[str, str], path: str, content: str | None) -> None:
    """Write a file, or delete it for None."""
    key = _find(files, path)
    if content is None:
        files.pop(key, None)
    else:
        files[key] = content
