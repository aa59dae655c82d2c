"""The files that programs of the simulated hosts can read.

readlink, sha256sum and stat.
openssl: a key, a certificate of it, the same with another validity, and whether one has expired.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial

from cryptography.x509 import load_pem_x509_certificate

from chaos.lab.hostshell.process import HostSystem, Process, Program
from chaos.lab.hostshell.programs.cpu import (
    CPU_STAT,
    FILLER_CPU_STAT,
    PARAMETERS,
    TICKS,
    cpu_stat,
    filler_cpu_stat,
    parameter_file,
    proc_stat,
    read_parameter,
)
from chaos.lab.hostshell.programs.disks import DIRECTORIES, IO_MAX, device_number, io_max, mountinfo
from chaos.lab.hostshell.programs.units import FILES
from chaos.lab.node.kubelet.apiserver_link import (
    FILE,
    TARGET,
    client_certificate,
    has_expired,
    make_certificate,
    private_key,
)
from chaos.lab.node.kubelet.apiserver_link import FILE as CLIENT_CERTIFICATE

_ROOT_ONLY = ("/sys/class/dmi/id/product_uuid", CLIENT_CERTIFICATE, TARGET)


def _stat_of_pid1(host: HostSystem) -> str:
    """proc(5): field 22 is the start in ticks since boot; the machine's kernel starts with PID 1 here."""
    fields = ["1", "(systemd)", "S", "0", "1", "1", "0", "-1", "4194560"]
    return " ".join(fields + ["0"] * 12 + [str(round(_pid1_delay(host) * TICKS))] + ["0"] * 30) + "\n"


def _pid1_delay(host: HostSystem) -> float:
    """Start of PID 1 after btime, which has whole seconds."""
    return host.machine.pid1_start - int(host.machine.pid1_start)


def _client_certificate(host: HostSystem) -> str | None:
    if host.machine.kubelet_identity != "certificate":
        return None
    return host.machine.mounted_certificate or client_certificate(host.machine.name)


_NOLOGIN = (
    "System is going down. Unprivileged users are not permitted to log in anymore. For technical details, see"
    " pam_nologin(8).\n"
)
_FILES: dict[str, Callable[[HostSystem], str | None]] = {  # None: the file does not exist
    "/etc/machine-id": lambda host: host.machine.machine_id + "\n",
    "/sys/class/dmi/id/product_uuid": lambda host: host.machine.system_uuid + "\n",
    CLIENT_CERTIFICATE: _client_certificate,
    TARGET: _client_certificate,
    "/run/systemd/container": lambda host: "docker" if host.machine.container_id else None,
    "/run/nologin": lambda host: _NOLOGIN if host.machine.logind.refuses_logins else None,
    "/etc/hostname": lambda host: host.machine.name + "\n",
    "/proc/sys/kernel/panic": lambda host: f"{host.machine.spec.panic_timeout}\n",
    "/proc/sys/kernel/random/boot_id": lambda host: host.machine.boot_id + "\n",
    "/proc/1/stat": _stat_of_pid1,
    CPU_STAT: cpu_stat,
    IO_MAX: io_max,
    "/sys/fs/cgroup/cgroup.controllers": lambda _: "cpuset cpu io memory hugetlb pids rdma misc\n",
    "/proc/self/mountinfo": mountinfo,
    "/proc/1/comm": lambda _: "systemd\n",
    "/proc/stat": proc_stat,
    FILLER_CPU_STAT: filler_cpu_stat,
    "/proc/uptime": lambda host: f"{host.uptime:.2f} {host.uptime:.2f}\n",
    **FILES,
    **{parameter_file(name): partial(read_parameter, name) for name in PARAMETERS},
}


def read_file(process: Process, path: str) -> tuple[str | None, str]:
    """The content; None and the reason if the file does not exist or is not readable by the user."""
    if path in _ROOT_ONLY and not process.is_root:
        return None, "Permission denied"
    known = _FILES.get(path)
    host = process.host
    if path in host.machine.hidden_files:
        return "", ""  # /dev/null
    text = known(host) if known else host.run_files.get(path, host.machine.files.get(path))
    return text, "" if text is not None else "No such file or directory"


async def readlink(process: Process, argv: list[str]) -> int:
    """``readlink [--canonicalize] FILE``: the kubelet's client certificate is the only symbolic link."""
    if argv[1:] not in ([FILE], ["--canonicalize", FILE]) or process.host.machine.kubelet_identity != "certificate":
        return 1
    process.out(f"{TARGET}\n")
    return 0


async def sha256sum(process: Process, argv: list[str]) -> int:
    """``sha256sum FILE``."""
    text, why = read_file(process, argv[-1])
    if text is None:
        return process.fail(f"sha256sum: {argv[-1]}: {why}")
    process.out(f"{hashlib.sha256(text.encode()).hexdigest()}  {argv[-1]}\n")
    return 0


async def stat(process: Process, argv: list[str]) -> int:
    """``stat [--dereference] --format=FORMAT FILE``; all files are root's alone. Also the type of /sys/fs/cgroup."""
    if argv[1:] == ["--file-system", "--format=%T", "/sys/fs/cgroup"]:
        process.out("cgroup2fs\n")
        return 0
    options, path = argv[1:-1], argv[-1]
    if options == ["--dereference", "--format=device=%d"]:
        return _device(process, path)
    if not options or not options[-1].startswith("--format=") or options[:-1] not in ([], ["--dereference"]):
        return process.fail("stat: the lab simulates only stat [--dereference] --format=FORMAT FILE")
    text, why = read_file(process, path)
    if text is None:
        return process.fail(f"stat: cannot statx '{path}': {why}")
    line = options[-1].removeprefix("--format=")
    for directive, value in {"%a": "600", "%u": "0", "%g": "0", "%n": path}.items():
        line = line.replace(directive, value)
    process.out(f"{line}\n")
    return 0


def _device(process: Process, path: str) -> int:
    """Number of the device, as of makedev(3), of the file system that has a directory."""
    if path not in DIRECTORIES:
        return process.fail(f"stat: cannot statx '{path}': No such file or directory")
    major, minor = map(int, device_number(path).split(":"))
    process.out(f"device={major << 8 | minor}\n")
    return 0


_DEFAULT_DAYS = 30  # of openssl req
_WORDS = {  # of the simulated forms; None: any value
    "genpkey": ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", None],
    "req": ["-x509", "-new", "-key", None, "-subj", None, "-out", None],
    "x509": ["-in", None, "-signkey", None, "-days", "0"],
}
_CHECK = ["-noout", "-checkend", "0", "-in", None]


def _values(words: list[str], form: list[str | None]) -> list[str] | None:
    """The values of a form; None if the words have another one."""
    if len(words) != len(form) or any(part not in (None, word) for word, part in zip(words, form, strict=True)):
        return None
    return [word for word, part in zip(words, form, strict=True) if part is None]


async def openssl(process: Process, argv: list[str]) -> int:
    """``genpkey``, ``req -x509``, ``x509 -signkey ... -days 0`` and ``x509 -checkend 0``."""
    verb, words = (argv[1], argv[2:]) if len(argv) > 1 else ("", [])
    if verb == "x509" and (values := _values(words, _CHECK)):
        return _check(process, values[0])
    values = _values(words, _WORDS.get(verb, []))
    if not values:
        return process.fail(f"openssl: the lab does not simulate openssl {' '.join(argv[1:])}")
    output = values[-1] if verb != "x509" else ""
    if output and not (process.is_root and output.startswith("/run/")):
        return process.fail(f'Can\'t open "{output}" for writing, Permission denied')
    if verb == "genpkey":
        process.host.run_files[output] = private_key()
        return 0
    now = datetime.fromtimestamp(process.host.sim.now, UTC)
    if verb == "req":
        process.host.run_files[output] = make_certificate(values[1], now, now + timedelta(days=_DEFAULT_DAYS))
        return 0
    return _sign_again(process, values[0], now)


def _sign_again(process: Process, path: str, now: datetime) -> int:
    """Write the certificate with a validity that ends now."""
    text, why = read_file(process, path)
    if text is None:
        return process.fail(f"Can't open {path} for reading, {why}")
    organization, name = (str(attribute.value) for attribute in load_pem_x509_certificate(text.encode()).subject)
    process.out(make_certificate(f"/O={organization}/CN={name}", now, now))
    return 0


def _check(process: Process, path: str) -> int:
    text, why = read_file(process, path)
    if text is None:
        return process.fail(f"Can't open {path} for reading, {why}")
    expired = has_expired(text, process.host.sim.now)
    process.out(f"Certificate will {'' if expired else 'not '}expire\n")
    return int(expired)


PROGRAMS: dict[str, Program] = {
    "readlink": readlink,
    "sha256sum": sha256sum,
    "stat": stat,
    "openssl": openssl,
}
