"""Command lines that a host receives, and the commands inside of them."""

from __future__ import annotations

import re
import shlex

from chaos.machines.sessions.script import ARMED_SCRIPT, SCRIPT

_ENCODED = re.compile(r"exec /bin/sh -c 'script=\$\(printf \"(.*)\"\) && eval \"\$script\"'")
_ESCAPE = re.compile(rb"\\([0-7]{3})|%%")


def sent_script(line: str) -> str:
    """The script that a login line makes /bin/sh run."""
    match = _ENCODED.fullmatch(line)
    assert match, line
    encoded = match[1].encode("ascii")
    return _ESCAPE.sub(lambda found: bytes([int(found[1], 8)]) if found[1] else b"%", encoded).decode()


def sent_command(line: str) -> str:
    """The command inside of a login line, with its sudo, quoted for a shell; any other line as it is."""
    if not _ENCODED.fullmatch(line):
        return line
    words = shlex.split(sent_script(line).split(">&2; exec ", 1)[1])
    script = next(index for index, word in enumerate(words) if word in (SCRIPT, ARMED_SCRIPT))
    return shlex.join([*words[: words.index("/bin/sh")], *words[script + 3 :]])
