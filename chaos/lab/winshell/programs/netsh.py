"""netsh advfirewall firewall add|delete rule, as nodefall uses it. Errors have exit code 1.

Output is as recorded. No recording: the texts of errors other than "No rules match".
"""

from __future__ import annotations

from chaos.lab.windows.firewall import FirewallError, FirewallRule, covers_address
from chaos.lab.winshell.process import WinProcess

_CONSTANT = {"action": "block", "profile": "any", "protocol": "any", "enable": "yes"}
_PROBE = "192.0.2.1"


async def netsh(process: WinProcess, arguments: list[str]) -> int:
    """``add rule name=N dir=in|out action=block profile=any protocol=any enable=yes remoteip=A,B``, ``delete rule``."""
    pairs = dict(word.partition("=")[::2] for word in arguments[4:])
    try:
        match arguments[:4]:
            case ["advfirewall", "firewall", "add", "rule"]:
                process.machine.firewall.add(_rule(pairs))
            case ["advfirewall", "firewall", "delete", "rule"] if pairs.keys() == {"name"}:
                count = process.machine.firewall.delete(pairs["name"])
                if not count:
                    return _fail(process, "No rules match the specified criteria.")
                process.line()
                process.line(f"Deleted {count} rule(s).")
            case _:
                process.line(f"The following command was not found: {' '.join(arguments)}.")
                return 1
    except FirewallError as error:
        return _fail(process, f"A specified value is not valid: {error}")
    process.line("Ok.")
    process.line()
    return 0


def _rule(pairs: dict[str, str]) -> FirewallRule:
    """Raises FirewallError, also for what the lab does not simulate."""
    rest = pairs.keys() - _CONSTANT.keys() - {"name", "dir", "remoteip"}
    if rest or not pairs.get("name") or any(pairs.get(key) != value for key, value in _CONSTANT.items()):
        raise FirewallError(" ".join(map("=".join, pairs.items())))
    direction, addresses = pairs.get("dir"), tuple(pairs.get("remoteip", "any").split(","))
    for item in addresses:
        covers_address(item, _PROBE)
    if direction == "in":
        return FirewallRule(pairs["name"], "in", addresses)
    if direction == "out":
        return FirewallRule(pairs["name"], "out", addresses)
    raise FirewallError(f"dir={direction}")


def _fail(process: WinProcess, message: str) -> int:
    process.line()
    process.line(message)
    process.line()
    return 1
