"""powershell.exe: a closed set of scripts, each answered by a dedicated handler.

A script has its name in a comment, and its parameters as JSON; the rest must be the very text that the handler was
written for. No language is interpreted.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from xml.sax.saxutils import escape

from chaos.lab.winshell.process import WinProcess
from chaos.lab.winshell.scripts import SCRIPTS
from chaos.lab.winshell.scripts.script import ScriptError

_OPTIONS = ["-NoProfile", "-NonInteractive", "-EncodedCommand"]
_SCRIPT = re.compile(
    r"\$ProgressPreference='SilentlyContinue';\$ErrorActionPreference='Stop';\n# nodefall (?P<name>[a-z-]+)\n"
    r"(?:\$p=ConvertFrom-Json '(?P<parameters>[^'\n]*)'\n)?(?P<body>.*)",
    re.DOTALL,
)
_CLIXML = '#< CLIXML\r\n<Objs Version="1.1.0.1" xmlns="http://schemas.microsoft.com/powershell/2004/04">'


async def powershell(process: WinProcess, arguments: list[str]) -> int:
    """``powershell.exe -NoProfile -NonInteractive -EncodedCommand BASE64``. Errors are on stderr as CLIXML."""
    if arguments[:-1] != _OPTIONS:
        return process.fail(f"The lab has no PowerShell: it answers scripts of {' '.join(_OPTIONS)} only.")
    try:
        text = base64.b64decode(arguments[-1], validate=True).decode("utf-16-le")
    except (binascii.Error, UnicodeDecodeError):
        reason = "the value specified with -EncodedCommand is not properly encoded."
        return process.fail(f"Cannot process the command because {reason}")
    match = _SCRIPT.fullmatch(text)
    script = SCRIPTS.get(match["name"]) if match else None
    if match is None or script is None:
        return _fail(process, f"The lab has no PowerShell: it does not know this script: {text[:200]}")
    if script.digest != digest(match["body"]):
        return _fail(process, f"The lab knows another text of the script {match['name']}.")
    try:
        return await script.run(process, json.loads(match["parameters"] or "{}"))
    except ScriptError as error:
        return _fail(process, str(error))


def digest(body: str) -> str:
    """By which a handler recognizes the text of its script."""
    return hashlib.sha256(body.encode()).hexdigest()[:12]


def _fail(process: WinProcess, message: str) -> int:
    lines = "".join(f'<S S="Error">{escape(line)}_x000D__x000A_</S>' for line in message.splitlines())
    process.err(f"{_CLIXML}{lines}</Objs>")
    return 1
