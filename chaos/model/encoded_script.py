"""Scripts for Windows PowerShell as arguments: encoded, as nothing then needs quoting."""

from __future__ import annotations

import base64
import binascii

# Progress is written to standard error as XML; an error that is not fatal would leave exit code 0.
_PREFERENCES = "$ProgressPreference='SilentlyContinue';$ErrorActionPreference='Stop';"
_OPTION = "-EncodedCommand"


def encode_script(script: str) -> tuple[str, str]:
    """The arguments that run ``script``; the exit code is 1 if one of its commands fails."""
    return _OPTION, base64.b64encode((_PREFERENCES + script).encode("utf-16-le")).decode()


def decode_script(argv: tuple[str, ...]) -> str:
    """The script at the end of a command line, without its preamble; "" for another program."""
    if argv[-2:-1] != (_OPTION,):
        return ""
    try:
        return base64.b64decode(argv[-1], validate=True).decode("utf-16-le").removeprefix(_PREFERENCES)
    except (binascii.Error, UnicodeDecodeError):
        return ""
