"""The files of the pod: a ConfigMap and keys of a Secret, mounted at the very paths that the documents name."""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
from collections.abc import Iterable, Mapping
from typing import Any

from chaos.core.errors import UsageError
from chaos.gameday.deploy.deployment import DAY_ROOT, HOME, REPORTS, DayFile, Deployment

_MAX_BYTES = 1_000_000  # of a ConfigMap: a little less than 1 MiB
_MODE = 0o440
_OCCUPIED = ("/app", "/dev", "/proc", "/sys", "/tmp", "/usr", "/var/run/secrets", REPORTS)  # noqa: S108 - a mount
_MIN_DEPTH = 2  # a mount over /etc or /home would hide what is there


def config_keys(files: Iterable[DayFile]) -> dict[str, str]:
    """The key of each file in the ConfigMap, by its path; keys are unique, and say which file it is."""
    keys: dict[str, str] = {}
    for path in sorted(file.path for file in files):
        base = re.sub(r"[^-._A-Za-z0-9]+", "_", path.removeprefix(f"{DAY_ROOT}/").strip("/"))[-200:]
        key, number = base, 1
        while key in keys.values():
            number += 1
            key = f"{base}.{number}"
        keys[path] = key
    return keys


def config_data(deployment: Deployment) -> dict[str, str]:
    """The data of the ConfigMap. Raises UsageError if they are too large for one."""
    keys = config_keys(deployment.files)
    data = {keys[file.path]: file.text for file in deployment.files}
    size = sum(len(key) + len(text.encode()) for key, text in data.items())
    if size > _MAX_BYTES:
        raise UsageError(
            f"the files of {deployment.day} have {size:,} bytes: a ConfigMap takes {_MAX_BYTES:,}",
            hint="make it several game days",
        )
    return dict(sorted(data.items()))


def config_name(deployment: Deployment) -> str:
    """The name has a hash: a day that has begun keeps its files when others are deployed."""
    text = json.dumps(config_data(deployment), sort_keys=True)
    return f"{deployment.name}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def file_volumes(deployment: Deployment) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Volumes and their mounts: one for each folder that has files. Raises UsageError for a folder that is taken."""
    keys = config_keys(deployment.files)
    secrets = {file.path: file.key for file in deployment.secret_files}
    volumes, mounts = [], []
    for number, (root, paths) in enumerate(_roots([*keys, *secrets]).items()):
        name = f"files-{number}"
        sources = [
            *_source("configMap", config_name(deployment), root, {path: keys[path] for path in paths if path in keys}),
            *_source("secret", deployment.secret, root, {path: secrets[path] for path in paths if path in secrets}),
        ]
        volumes.append({"name": name, "projected": {"defaultMode": _MODE, "sources": sources}})
        mounts.append({"name": name, "mountPath": root, "readOnly": True})
    return volumes, mounts


def _source(kind: str, name: str, root: str, keys: Mapping[str, str]) -> list[dict[str, Any]]:
    items = [{"key": key, "path": posixpath.relpath(path, root)} for path, key in sorted(keys.items())]
    return [{kind: {"name": name, "items": items}}] if items else []


def _roots(paths: Iterable[str]) -> dict[str, list[str]]:
    """The files by the folder that is mounted for them: no mount is within another."""
    found: dict[str, list[str]] = {}
    for path in sorted(paths, key=lambda path: (posixpath.dirname(path), path)):
        folder = DAY_ROOT if path.startswith(f"{DAY_ROOT}/") else posixpath.dirname(path)
        root = next((root for root in found if f"{folder}/".startswith(f"{root}/")), folder)
        found.setdefault(root, []).append(path)
    for root in found:
        _check_folder(root)
    return found


def _check_folder(folder: str) -> None:
    taken = folder == HOME or any(
        f"{folder}/".startswith(f"{other}/") or f"{other}/".startswith(f"{folder}/") for other in _OCCUPIED
    )
    if taken or folder.count("/") < _MIN_DEPTH:
        raise UsageError(
            f"the inventory names a file in {folder}, which is another folder in a container",
            hint="put it into a separate folder, such as ~/.ssh or one beside the inventory",
        )
