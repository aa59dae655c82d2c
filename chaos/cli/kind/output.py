"""Which lines of a failed ``kind create cluster``, and of the logs of its nodes, say why it failed.

kind prints its own error, then the output of the command that failed. With the verbosity that kind uses, kubeadm prints
each error of a chain with a Go stack trace (pkg/cluster/internal/create/actions/kubeadminit/init.go of kind;
cmd/kubeadm/app/util/error.go of Kubernetes).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from chaos.core.text import printable

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


@dataclass(frozen=True, slots=True)
class KnownCause:
    """A cause that nodefall recognizes: the line that shows it, and what to do, in the imperative."""

    line: str
    hint: str


_KNOWN = (
    # inotify_init fails with EMFILE, inotify_add_watch with ENOSPC. systemd and the kubelet write these.
    (
        re.compile(r"too many open files|inotify.*no space left on device", re.IGNORECASE),
        f"raise the inotify limits of the machine on which the containers run: {INOTIFY_COMMAND}",
    ),
    (re.compile(r"kubelet is configured to not run on a host using cgroup v1"), CGROUP_REMEDY),
)


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
