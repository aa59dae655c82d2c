"""Why kind nodes do not start: lines of a failed command and of logs that say so, and limits of the machine.

kind prints its own error, then the output of the command that failed. With the verbosity that kind uses, kubeadm prints
each error of a chain with a Go stack trace (pkg/cluster/internal/create/actions/kubeadminit/init.go of kind;
cmd/kubeadm/app/util/error.go of Kubernetes). Limits of the machine are warnings only: they may suffice, and the nodes
may be prepared.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from chaos.core.errors import NodefallError
from chaos.core.text import printable
from chaos.machines.local import run_program

INOTIFY_LIMITS = {"fs.inotify.max_user_watches": 524288, "fs.inotify.max_user_instances": 512}  # kind: known issues
INOTIFY_COMMAND = "sudo sysctl " + " ".join(f"{name}={value}" for name, value in INOTIFY_LIMITS.items())
CGROUP_REMEDY = (
    "use a version before v1.35, or set failCgroupV1: false in a KubeletConfiguration under kubeadmConfigPatches of a "
    "file that you give with --config"
)
_LAST, _MOST, _FIRST, _LONGEST = 15, 12, 2, 600  # lines, lines, lines, characters
_LAST_LOGGED = 5

_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_OUTPUT = "Command Output: "  # pkg/exec of kind
_LOCATION = re.compile(r"\s+\S+\.(?:go|s):\d+(?: \+0x[0-9a-f]+)?\s*")
_FUNCTION = re.compile(r"(?:created by )?[\w.~@/-]+\.[\w(*\[][^:]*|panic\(.*\)")
_HEADING = re.compile(
    r"goroutine \d+ .*\[.*\]:|stack trace:?|to see the stack trace of this error .*"
    r"|\.\.\.(?:additional|\d+) frames elided\.\.\.",
    re.IGNORECASE,
)
_PROGRESS = re.compile(
    r"[IW]\d{4} \d|\[[a-z][\w./-]*\] (?!.*(?:not healthy|unhealthy))|[✓•] |(?:Creat|Delet)\w+ (?:cluster|nodes)"
)
_LOGGED = re.compile(r"[EF]\d{4} [\d:.]+ +\d+ \S+:\d+\] ")  # by klog
_OWN = re.compile(r"ERROR: ")  # by kind
_CAUSE = re.compile(
    r"(?:error|fatal|panic|fatal error|(?:docker|podman): error\b.*|error response from daemon): "
    r"|\[ERROR [^\]]+\]|error execution phase |\[[\w-]+-check\] .*(?:not healthy|unhealthy)|The HTTP call equal to ",
    re.IGNORECASE,
)
_KNOWN = (
    # inotify_init fails with EMFILE, inotify_add_watch with ENOSPC. systemd and the kubelet write these.
    (
        re.compile(r"too many open files|inotify.*no space left on device", re.IGNORECASE),
        f"raise the inotify limits of the machine on which the containers run: {INOTIFY_COMMAND}",
    ),
    (re.compile(r"kubelet is configured to not run on a host using cgroup v1"), CGROUP_REMEDY),
)
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


@dataclass(frozen=True, slots=True)
class KnownCause:
    """A cause that nodefall recognizes: the line that shows it, and what to do, in the imperative."""

    line: str
    hint: str


def known_cause(lines: Iterable[str]) -> KnownCause | None:
    """The first known cause in the output or the log of a node."""
    for line in lines:
        for pattern, hint in _KNOWN:
            if pattern.search(line):
                return KnownCause(_shown(line), hint)
    return None


def last_lines(lines: Sequence[str]) -> list[str]:
    """The end of the output of a program, for its error."""
    return [shown for line in lines if (shown := _shown(line))][-_LAST:]


def failure_lines(lines: Sequence[str]) -> list[str]:
    """The lines of kind and kubeadm that say why no cluster was created, without Go stack traces.

    In the order of the output, each line once. The end of the output if no line looks like an error.
    """
    rest = list(_without_stacks([_ANSI.sub("", line) for line in lines]))
    causes = list(_causes(rest))
    if not [line for line in causes if not _OWN.match(line)]:
        output = [line.removeprefix(_OUTPUT) for line, _ in rest]
        causes += [_LOGGED.sub("", line) for line in output if _LOGGED.match(line)][-_LAST_LOGGED:]
    unique = list(dict.fromkeys(shown for line in causes if (shown := _shown(line))))
    if len(unique) > _MOST:
        unique = [*unique[:_FIRST], "...", *unique[_FIRST - _MOST :]]
    return unique or last_lines([line for line, _ in rest if not _PROGRESS.match(line.strip())]) or last_lines(lines)


def _without_stacks(lines: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """The lines that are in no stack trace, each with whether a stack trace follows: it is an error of a chain."""
    is_frame = [False] * len(lines)
    for index, line in enumerate(lines):
        if _LOCATION.fullmatch(line):
            is_frame[index] = True
            if index and _FUNCTION.fullmatch(lines[index - 1]):
                is_frame[index - 1] = True
    others = [index for index, line in enumerate(lines) if not is_frame[index] and not _HEADING.fullmatch(line.strip())]
    for index in others:
        yield lines[index], index + 1 < len(lines) and is_frame[index + 1]


def _causes(lines: Iterable[tuple[str, bool]]) -> Iterator[str]:
    was_cause = False
    for line, has_stack in lines:
        text = line.removeprefix(_OUTPUT).strip()
        is_output = line.startswith(_OUTPUT) or has_stack
        is_continued = was_cause and line[:1].isspace()
        is_noise = not text or _PROGRESS.match(text) or _LOGGED.match(text)
        was_cause = not is_noise and (is_output or is_continued or bool(_CAUSE.match(text)))
        if was_cause:
            yield text


def _shown(line: str) -> str:
    return printable(_ANSI.sub("", line), _LONGEST).strip()


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
