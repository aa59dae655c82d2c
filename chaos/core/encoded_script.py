"""Scripts for Windows PowerShell: files whose parameters are data; nothing on the command line needs quotes.

What is sent is the file without its comments, after a line with its name and a line that assigns ``$p``::

    # nodefall stop-services
    $p=ConvertFrom-Json '{"services":["kubelet"]}'
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

SCRIPTS = "chaos.core.windows_scripts"
_OPTION = "-EncodedCommand"
# Progress is written to standard error as XML; an error that is not fatal would leave exit code 0.
_PREFERENCES = "$ProgressPreference='SilentlyContinue';$ErrorActionPreference='Stop';"
_NAMED = re.compile(r"\n# nodefall (?P<name>[a-z-]+)\n(?:\$p=ConvertFrom-Json '(?P<parameters>[^'\n]*)'\n)?")


@cache
def read_script(name: str, package: str = SCRIPTS) -> str:
    """The script in ``NAME.ps1`` of a package, without its comments and indentation."""
    text = (files(package) / f"{name}.ps1").read_text(encoding="ascii")
    lines = (line.strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("#"))


def encode_script(name: str, parameters: Mapping[str, Any], package: str = SCRIPTS) -> tuple[str, str]:
    """The arguments of powershell.exe that run a script; the exit code is 1 if one of its commands fails."""
    head = f"{_PREFERENCES}\n# nodefall {name}\n"
    if parameters:
        head += f"$p=ConvertFrom-Json {_quote(parameters)}\n"
    return _OPTION, base64.b64encode((head + read_script(name, package)).encode("utf-16-le")).decode()


def _quote(parameters: Mapping[str, Any]) -> str:
    """A literal of PowerShell. JSON escapes all that is not ASCII, typographic quotation marks among it, and here also
    the one that would end the literal."""
    return "'" + json.dumps(parameters, separators=(",", ":")).replace("'", "\\u0027") + "'"


def decode_script(argv: tuple[str, ...]) -> str:
    """The script at the end of a command line as text: ``NAME {parameters}``. The whole text if it has no name, "" for
    another program."""
    if argv[-2:-1] != (_OPTION,):
        return ""
    try:
        text = base64.b64decode(argv[-1], validate=True).decode("utf-16-le").removeprefix(_PREFERENCES)
    except (binascii.Error, UnicodeDecodeError):
        return ""
    named = _NAMED.match(text)
    return f"{named['name']} {named['parameters'] or ''}".rstrip() if named else text
