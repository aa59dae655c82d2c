"""Keys of a kubeconfig in anonymous files in memory: a killed process leaves none of them behind."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_lock = threading.Lock()
_paths: dict[str, str] = {}  # by hash of the content; the descriptors stay open as long as the process


def memory_file(content: str | bytes) -> str:
    """The path, in this process only, of an anonymous file with the content. Raises OSError."""
    data = content.encode() if isinstance(content, str) else content
    key = hashlib.sha256(data).hexdigest()
    if key not in _paths:
        descriptor = os.memfd_create("nodefall")
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(data)
        _paths[key] = f"/proc/self/fd/{descriptor}"
    return _paths[key]


@contextmanager
def keys_in_memory(kube_config: Any) -> Iterator[None]:
    """In the block, ``kubernetes.config.kube_config`` makes no temporary files of the data in a kubeconfig.

    ssl reads keys from files only. Where there are no files in memory (not Linux), the client's temporary files remain
    until the process ends.
    """
    name = "_create_temp_file_with_content"
    if not hasattr(os, "memfd_create") or not os.path.isdir("/proc/self/fd") or not hasattr(kube_config, name):
        yield
        return
    with _lock:
        original = getattr(kube_config, name)
        setattr(kube_config, name, lambda content, *_, **__: memory_file(content))
        try:
            yield
        finally:
            setattr(kube_config, name, original)
