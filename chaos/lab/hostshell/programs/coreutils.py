"""Programs of coreutils and similar packages.

``sed -n /FROM/,/TO/p FILE...``: the lines of some blocks.
find(1), for the sockets and clients of container runtimes, files of systemd, and what does not exist on a worker.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from itertools import takewhile

from chaos.lab.hostshell.process import Process, Program
from chaos.lab.hostshell.programs.containers import SOCKET
from chaos.lab.hostshell.programs.files import read_file
from chaos.lab.hostshell.shell import Shell, execute, find_program

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


async def cat(process: Process, argv: list[str]) -> int:
    """``cat FILE...`` for simulated files, ``cat`` for stdin."""
    code = 0
    while len(argv) == 1 and (line := await process.read_line()):
        process.out(line)
    for path in argv[1:]:
        text, why = read_file(process, path)
        if text is None:
            code = process.fail(f"cat: {path}: {why}")
        else:
            process.out(text)
    return code


async def echo(process: Process, argv: list[str]) -> int:
    """``echo [-n] WORD...``."""
    newline = argv[1:2] != ["-n"]
    process.out(" ".join(argv[1:] if newline else argv[2:]) + ("\n" if newline else ""))
    return 0


_DIRECTIVE = re.compile(rb"\\([0-7]{1,3})|\\n|%(.)", re.DOTALL)


async def printf(process: Process, argv: list[str]) -> int:
    """``printf FORMAT WORD...`` with octal escapes, ``\\n``, ``%s`` and ``%%``; each word is used once."""
    words = iter(argv[2:])

    def replacement(match: re.Match[bytes]) -> bytes:
        if match[1]:
            return bytes([int(match[1], 8) & 255])
        if match[2] == b"s":
            return next(words, "").encode()
        return b"%" if match[2] else b"\n"

    if len(argv) < 2:
        return process.fail("printf: usage: printf format [arguments]", 2)
    process.out(_DIRECTIVE.sub(replacement, argv[1].encode()).decode("utf-8", "replace"))
    return 0


async def date(process: Process, argv: list[str]) -> int:
    """``date +FORMAT`` in UTC, with strftime's directives, ``%s`` and ``%N``."""
    now = process.host.sim.now
    moment = datetime.fromtimestamp(now, UTC)
    formats = [word[1:] for word in argv[1:] if word.startswith("+")]
    fraction = f"{now:.9f}".partition(".")[2]
    text = (formats or ["%a %b %e %H:%M:%S UTC %Y"])[0].replace("%s", str(int(now))).replace("%N", fraction)
    process.out(moment.strftime(text) + "\n")
    return 0


async def sleep(process: Process, argv: list[str]) -> int:
    """``sleep NUMBER[smhd]`` in simulated time."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", argv[1] if len(argv) == 2 else "")
    if not match:
        return process.fail(f"sleep: invalid time interval '{argv[1]}'" if argv[1:] else "sleep: missing operand")
    host = process.host
    await host.lockstep.wait_until(host.sim.now + float(match[1]) * _UNITS[match[2]])
    return 0


async def succeed(_: Process, __: list[str]) -> int:
    """true(1)."""
    return 0


async def fail(_: Process, __: list[str]) -> int:
    """false(1)."""
    return 1


async def uname(process: Process, argv: list[str]) -> int:
    """``uname`` of Debian 12 on x86_64."""
    name, release = process.host.machine.name, "6.1.0-28-amd64"
    build = "#1 SMP PREEMPT_DYNAMIC Debian 6.1.119-1 (2024-11-22)"
    answers = {
        "-n": name,
        "-r": release,
        "-m": "x86_64",
        "-v": build,
        "-a": f"Linux {name} {release} {build} x86_64 GNU/Linux",
    }
    process.out(answers.get(" ".join(argv[1:]), "Linux") + "\n")
    return 0


async def hostname(process: Process, argv: list[str]) -> int:
    """``hostname``: the node's name; with ``-I`` its addresses."""
    machine = process.host.machine
    if argv[1:] == ["-I"]:
        addresses = machine.network.resolve(machine.name)
        process.out(" ".join([*addresses.values(), ""]) + "\n")
        return 0
    if argv[1:]:
        return process.fail("hostname: the lab simulates only hostname and hostname -I")
    process.out(machine.name + "\n")
    return 0


async def whoami(process: Process, _: list[str]) -> int:
    """``whoami``."""
    process.out(process.user + "\n")
    return 0


async def identity(process: Process, argv: list[str]) -> int:
    """id(1)."""
    number = 0 if process.is_root else 1000
    answers = {"-u": str(number), "-g": str(number), "-un": process.user}
    everything = f"uid={number}({process.user}) gid={number}({process.user}) groups={number}({process.user})"
    process.out(answers.get(" ".join(argv[1:]), everything) + "\n")
    return 0


async def sudo(process: Process, argv: list[str]) -> int:
    """``sudo [-n] [-u root] [--] COMMAND...``, without a password for all users."""
    words = argv[1:]
    while words and words[0].startswith("-"):
        option, *words = words
        if option == "--":
            break
        if option == "-u":
            if words[:1] != ["root"]:
                return process.fail("sudo: the lab simulates no other user than root")
            words = words[1:]
        elif option not in ("-n", "--non-interactive", "-H"):
            return process.fail(f"sudo: the lab does not simulate the option {option}")
    if not words:
        return process.fail("usage: sudo [-n] [--] command [arg ...]")
    if find_program(process, words[0]) is None:
        return process.fail(f"sudo: {words[0]}: command not found")
    return await execute(process.replace(user="root", environment={}), words, "sudo")


async def grep(process: Process, argv: list[str]) -> int:
    """``grep -hsoE PATTERN FILE...``, or ``-H``, if the pattern means the same in Python; ``grep -qxF LINE FILE``."""
    if len(argv) == 4 and argv[1] == "-qxF":
        text, why = read_file(process, argv[3])
        if text is None:
            return process.fail(f"grep: {argv[3]}: {why}", 2)
        return 0 if argv[2] in text.splitlines() else 1
    if len(argv) < 4 or argv[1] not in ("-hsoE", "-HsoE") or "\\" in argv[2] or "[:" in argv[2]:
        return process.fail("grep: the lab simulates only grep -hsoE PATTERN FILE...", 2)
    known = {path: read_file(process, path)[0] for path in argv[3:]}
    found = [
        f"{path}:{part[0]}" if argv[1].startswith("-H") else part[0]
        for path, text in known.items()
        if text is not None
        for line in text.splitlines()
        for part in re.finditer(argv[2], line)
    ]
    process.out("".join(f"{part}\n" for part in found))
    return 2 if None in known.values() else 0 if found else 1


async def env(process: Process, argv: list[str]) -> int:
    """``env [-i] NAME=VALUE... PROGRAM...``."""
    inherited = {} if argv[1:2] == ["-i"] else process.environment
    words = argv[2:] if argv[1:2] == ["-i"] else argv[1:]
    given = dict(word.split("=", 1) for word in takewhile(lambda word: "=" in word, words))
    program = words[len(given) :]
    if not program:
        return process.fail("env: the lab simulates only env [-i] NAME=VALUE... PROGRAM...", 125)
    return await execute(process.replace(environment={**inherited, **given}), program, "env")


async def printenv(process: Process, argv: list[str]) -> int:
    """``printenv NAME``."""
    if len(argv) != 2 or argv[1] not in process.environment:
        return 1
    process.out(process.environment[argv[1]] + "\n")
    return 0


async def shell(process: Process, argv: list[str]) -> int:
    """``sh -c SCRIPT [NAME [ARGUMENT...]]``; bash accepts ``--norc`` and ``-p``."""
    bash = argv[0] == "bash"
    argv = [word for number, word in enumerate(argv) if not (bash and number < 3 and word in ("--norc", "-p"))]
    if len(argv) < 3 or argv[1] not in ("-c", "-ec", "-euc"):
        return process.fail(f"{argv[0]}: the lab simulates only {argv[0]} -c", 2)
    return await Shell(process, argv[3:] or [argv[0]], bash=bash).run(argv[2])


_BLOCKS = re.compile(r"/((?:[^/\\]|\\.)+)/,/((?:[^/\\]|\\.)+)/p")


async def sed(process: Process, argv: list[str]) -> int:
    """Print the blocks of all files, as if they were one; exit code 2 if a file is missing or unreadable."""
    match = _BLOCKS.fullmatch(argv[2]) if len(argv) > 3 and argv[1] == "-n" else None
    if match is None:
        return process.fail("sed: the lab simulates only sed -n /FROM/,/TO/p FILE...")
    begin, end = re.compile(match[1]), re.compile(match[2])
    code, inside = 0, False
    for path in argv[3:]:
        text, why = read_file(process, path)
        if text is None:
            code = process.fail(f"sed: can't read {path}: {why}", 2)
            continue
        for line in text.splitlines():
            if inside or begin.search(line):
                process.out(line + "\n")
                inside = not (inside and end.search(line))
    return code


_CLIENT, _NOLOGIN = "/usr/bin/crictl", "/run/nologin"


async def find(process: Process, argv: list[str]) -> int:
    """``find PATH... -maxdepth 0 [-type s]``: print those of the paths that exist; ``find DIRECTORY... -name NAME``."""
    paths = [word for word in argv[1:] if word.startswith("/")]
    if argv[1 + len(paths) : -1] == ["-name"]:
        return _find_by_name(process, paths, argv[-1])
    existing = {SOCKET} if "-type" in argv else {SOCKET, _CLIENT, *process.host.machine.files}
    if argv[1 + len(paths) :] not in (["-maxdepth", "0", "-type", "s"], ["-maxdepth", "0"]):
        return process.fail("find: the lab simulates only find PATH... -maxdepth 0 [-type s], find PATH... -name NAME")
    if read_file(process, _NOLOGIN)[0] is not None:
        existing.add(_NOLOGIN)
    missing = [path for path in paths if path not in existing]
    for path in missing:
        process.err(f"find: '{path}': No such file or directory\n")
    process.out("".join(f"{path}\n" for path in paths if path in existing))
    return 1 if missing else 0


def _find_by_name(process: Process, directories: list[str], pattern: str) -> int:
    """In /run, where a directory exists if it has a file."""
    known = sorted(process.host.run_files)
    missing = [path for path in directories if not any(file.startswith(f"{path}/") for file in known)]
    for path in missing:
        process.err(f"find: '{path}': No such file or directory\n")
    inside = [file for file in known if any(file.startswith(f"{path}/") for path in directories)]
    process.out("".join(f"{file}\n" for file in inside if fnmatchcase(file.rpartition("/")[2], pattern)))
    return 1 if missing else 0


PROGRAMS: dict[str, Program] = {
    "bash": shell,
    "cat": cat,
    "date": date,
    "echo": echo,
    "false": fail,
    "grep": grep,
    "hostname": hostname,
    "id": identity,
    "env": env,
    "printenv": printenv,
    "printf": printf,
    "sh": shell,
    "sleep": sleep,
    "sudo": sudo,
    "true": succeed,
    "uname": uname,
    "whoami": whoami,
    "sed": sed,
    "find": find,
}
