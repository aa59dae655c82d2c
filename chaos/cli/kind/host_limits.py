"""What of the machine that runs the containers keeps kind nodes from starting: inotify limits and cgroup v1.

Warnings only: the limits may suffice, and the nodes may be prepared.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from chaos.cli.kind.output import CGROUP_REMEDY, INOTIFY_LIMITS
from chaos.core.errors import NodefallError
from chaos.core.text import printable
from chaos.machines.power.local import run_program

_PROC = Path("/proc/sys")
_TIMEOUT = 20.0  # seconds
# The version of cgroups and of the kernel, as the engine has them.
_INFO = {
    "docker": "{{.CgroupVersion}} {{.KernelVersion}}",
    "podman": "{{.Host.CgroupsVersion}} {{.Host.Kernel}}",
}
_ENDPOINT = {"docker": "DOCKER_HOST", "podman": "CONTAINER_HOST"}
_LOCAL_ENDPOINT = re.compile(r"(?:unix|fd)://.*|")
_FAILS_ON_CGROUP_V1 = (1, 35)  # kubernetes/kubernetes: failCgroupV1 is true by default
_VERSION = re.compile(r"v?(\d+)\.(\d+)\b")
_IS_PREPARED = re.compile(r"failCgroupV1[\"']?:\s*false\b", re.IGNORECASE)


def host_warnings(engine: str, kubelet: str, config: Path, environ: Mapping[str, str]) -> list[str]:
    """What may keep the nodes from starting. Whatever cannot be found out is left out.

    ``kubelet``: the version of the nodes, or the name of their image. ``config``: the file for kind.
    """
    cgroups, kernel = _engine_info(engine)
    warnings = [warning for warning in (cgroup_warning(cgroups, kubelet, _text(config)),) if warning]
    if kernel == platform.release() and _is_local(engine, environ):
        warnings += inotify_warnings(_PROC)
    return warnings


def cgroup_warning(version: str, kubelet: str, config: str) -> str:
    """That kubelets do not start on cgroup v1; "" if they do, or if the versions are unknown.

    ``config``: the text of the file for kind.
    """
    found = _VERSION.match(kubelet.partition("@")[0].rpartition(":")[2])
    fails = found is not None and (int(found[1]), int(found[2])) >= _FAILS_ON_CGROUP_V1
    if version.removeprefix("v") != "1" or not fails or _IS_PREPARED.search(config):
        return ""
    return f"the kubelet of {printable(kubelet)} does not start on cgroup v1, which the containers use: {CGROUP_REMEDY}"


def inotify_warnings(proc: Path) -> Iterator[str]:
    """The limits that are lower than kind recommends. ``proc``: /proc/sys."""
    for name, recommended in INOTIFY_LIMITS.items():
        value = _number(proc.joinpath(*name.split(".")))
        if value is not None and value < recommended:
            yield (
                f"{name} is {value}, and kind recommends {recommended}: nodes may fail with 'too many open files'; "
                f"set it with sudo sysctl {name}={recommended}"
            )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:  # kind says what is wrong with it
        return ""


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):  # another system than Linux
        return None


def _engine_info(engine: str) -> tuple[str, str]:
    """The versions of cgroups and of the kernel, "" where the engine does not say."""
    words = _output(engine, "info", "--format", _INFO[engine]).split()
    return (words[0], words[1]) if len(words) == 2 else ("", "")


def _is_local(engine: str, environ: Mapping[str, str]) -> bool:
    """Whether the engine is reached through a socket of this machine."""
    endpoint = environ.get(_ENDPOINT[engine]) or ""
    if not endpoint and engine == "docker":
        endpoint = _output(engine, "context", "inspect", "--format", "{{.Endpoints.docker.Host}}")
    return bool(_LOCAL_ENDPOINT.fullmatch(endpoint))


def _output(*argv: str) -> str:
    """The output of a program, "" if it failed."""
    try:
        done = run_program(argv, _TIMEOUT)
    except NodefallError:
        return ""
    return "" if done.exit else done.stdout.strip()
