"""sysctl(8), for the kernel parameters that the simulation has: their values matter to no mechanism of the lab."""

from __future__ import annotations

from chaos.lab.hostshell.process import HostSystem, Process, Program

# Defaults of a Debian 12 kernel; a boot restores them.
PARAMETERS = {
    "fs.file-max": "9223372036854775807",
    "net.core.default_qdisc": "pfifo_fast",
    "net.core.somaxconn": "4096",
    "net.ipv4.ip_forward": "1",
    "net.ipv4.tcp_keepalive_time": "7200",
    "vm.max_map_count": "65530",
    "vm.overcommit_memory": "1",
    "vm.swappiness": "60",
}


def parameter_file(name: str) -> str:
    """Its file in /proc."""
    return "/proc/sys/" + name.replace(".", "/")


def read_parameter(name: str, host: HostSystem) -> str:
    """Content of its file."""
    return host.parameters.get(name, PARAMETERS[name]) + "\n"


async def sysctl(process: Process, argv: list[str]) -> int:
    """``sysctl [-n] NAME...`` and ``sysctl -w NAME=VALUE...``."""
    options = [word for word in argv[1:] if word.startswith("-")]
    words = [word for word in argv[1:] if not word.startswith("-")]
    if not words or not {"-n", "-w", "--values", "--write"}.issuperset(options):
        return process.fail("sysctl: the lab simulates only sysctl [-n] NAME... and sysctl -w NAME=VALUE...")
    return max([_apply(process, word, quiet={"-n", "--values"}.intersection(options) != set()) for word in words])


def _apply(process: Process, word: str, *, quiet: bool) -> int:
    name, assigned, value = word.partition("=")
    if name not in PARAMETERS:
        return process.fail(f"sysctl: cannot stat {parameter_file(name)}: No such file or directory", 255)
    if assigned and process.user != "root":
        return process.fail(f'sysctl: permission denied on key "{name}"', 255)
    if assigned:
        process.host.parameters[name] = value
    shown = read_parameter(name, process.host)
    process.out(shown if quiet else f"{name} = {shown}")
    return 0


PROGRAMS: dict[str, Program] = {"sysctl": sysctl}
