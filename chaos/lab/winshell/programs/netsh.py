"""netsh advfirewall: rules of the firewall, its state and its default policy. Errors have exit code 1.

Output is as recorded. No recording: the texts of ``show allprofiles`` and of errors other than "No rules match".
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable

from chaos.lab.windows.firewall import API_PORT, PROFILES, FirewallError, FirewallRule, covers_address, covers_port
from chaos.lab.winshell.process import WinProcess

_NO_MATCH = "No rules match the specified criteria."
_PROFILE_SETS = {
    "allprofiles": PROFILES,
    "domainprofile": ("Domain",),
    "privateprofile": ("Private",),
    "publicprofile": ("Public",),
    "currentprofile": ("Public",),
}
_ADD_KEYS = frozenset(
    ["name", "dir", "action", "program", "enable", "profile", "localip", "remoteip", "localport", "remoteport"]
) | {"protocol", "description", "interfacetype", "edge", "service"}
_RULE = "-" * 70
_PROBE = "192.0.2.1"


async def netsh(process: WinProcess, arguments: list[str]) -> int:
    """``netsh advfirewall firewall add|delete|show|set rule``, ``netsh advfirewall set|show PROFILE``."""
    lower = [word.lower() for word in arguments]
    try:
        if lower[:2] == ["advfirewall", "firewall"] and lower[3:4] == ["rule"]:
            handler: Callable[[WinProcess, dict[str, str]], int] | None = _RULE_VERBS.get(lower[2])
            if handler is not None:
                return handler(process, _pairs(arguments[4:]))
        elif lower[:2] == ["advfirewall", "set"] and len(lower) == 5:
            return _set_profile(process, lower[2:])
        elif lower[:2] == ["advfirewall", "show"] and len(lower) > 2:
            return _show_profile(process, lower[2:])
    except FirewallError as error:
        return _fail(process, f"A specified value is not valid: {error}")
    process.line(f"The following command was not found: {' '.join(arguments)}.")
    return 1


def _pairs(words: list[str]) -> dict[str, str]:
    """``key=value`` words, keys in lower case; bare ``verbose`` and ``new`` are empty. Raises FirewallError."""
    pairs: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals and key.lower() not in ("verbose", "new"):
            raise FirewallError(word)
        pairs[key.lower()] = value
    return pairs


def _fail(process: WinProcess, message: str) -> int:
    process.line()
    process.line(message)
    process.line()
    return 1


def _succeed(process: WinProcess) -> int:
    process.line("Ok.")
    process.line()
    return 0


def _add(process: WinProcess, pairs: dict[str, str]) -> int:
    """Raises FirewallError."""
    missing = [key for key in ("name", "dir", "action") if not pairs.get(key)]
    unknown = pairs.keys() - _ADD_KEYS  # there is no group: grouping needs PowerShell
    if missing or unknown or pairs["dir"] not in ("in", "out") or pairs["action"] not in ("allow", "block", "bypass"):
        raise FirewallError(", ".join([*missing, *sorted(unknown)]))
    protocol = pairs.get("protocol", "any")
    if ("localport" in pairs or "remoteport" in pairs) and protocol.lower() not in ("tcp", "udp", "6", "17"):
        raise FirewallError("localport and remoteport need protocol tcp or udp")
    process.machine.firewall.add(
        FirewallRule(
            pairs["name"],
            "in" if pairs["dir"] == "in" else "out",
            pairs["action"],
            pairs.get("enable", "yes").lower() == "yes",
            _profiles(pairs.get("profile", "any")),
            _addresses(pairs.get("localip", "any")),
            _addresses(pairs.get("remoteip", "any")),
            protocol,
            _ports(pairs.get("localport", "any")),
            _ports(pairs.get("remoteport", "any")),
            pairs.get("program", ""),
        )
    )
    return _succeed(process)


def _profiles(text: str) -> tuple[str, ...]:
    """Raises FirewallError."""
    if text.lower() == "any":
        return PROFILES
    names = [name.strip().capitalize() for name in text.split(",")]
    if not set(names) <= set(PROFILES):
        raise FirewallError(text)
    return tuple(name for name in PROFILES if name in names)


def _addresses(text: str) -> tuple[str, ...]:
    """Raises FirewallError."""
    items = tuple(item.strip() for item in text.split(","))
    for item in items:
        covers_address(item, _PROBE)
    return items


def _ports(text: str) -> tuple[str, ...]:
    """Raises FirewallError."""
    items = tuple(item.strip() for item in text.split(","))
    for item in items:
        covers_port(item, API_PORT)
    return items


def _delete(process: WinProcess, pairs: dict[str, str]) -> int:
    count = process.machine.firewall.delete(pairs.get("name", ""))
    if not count:
        return _fail(process, _NO_MATCH)
    process.line()
    process.line(f"Deleted {count} rule(s).")
    return _succeed(process)


def _set_rule(process: WinProcess, pairs: dict[str, str]) -> int:
    """``set rule name=X new enable=yes|no``: the only change that the lab simulates."""
    firewall = process.machine.firewall
    found = firewall.named(pairs.get("name", ""))
    if not found or pairs.get("enable", "").lower() not in ("yes", "no"):
        return _fail(process, _NO_MATCH)
    firewall.enable(found, enabled=pairs["enable"].lower() == "yes")
    process.line()
    process.line(f"Updated {len(found)} rule(s).")
    return _succeed(process)


def _show(process: WinProcess, pairs: dict[str, str]) -> int:
    rules = process.machine.firewall.named(pairs.get("name", ""))
    if pairs.get("dir"):
        rules = [rule for rule in rules if rule.direction == pairs["dir"].lower()]
    if not rules:
        return _fail(process, _NO_MATCH)
    for rule in rules:
        process.line()
        for line in _describe(rule, verbose="verbose" in pairs):
            process.line(line)
    return _succeed(process)


def _describe(rule: FirewallRule, *, verbose: bool) -> list[str]:
    """Rows of one rule; the value begins at column 38, and the rule of dashes follows the name.

    No recording: the values of what ``verbose`` adds.
    """
    rows = [
        ("Enabled:", "Yes" if rule.enabled else "No"),
        ("Direction:", rule.direction.capitalize()),
        ("Profiles:", ",".join(rule.profiles)),
        ("Grouping:", ""),
        ("LocalIP:", _joined(map(_shown_address, rule.local_ip))),
        ("RemoteIP:", _joined(map(_shown_address, rule.remote_ip))),
        ("Protocol:", rule.protocol.capitalize() if rule.protocol.lower() == "any" else rule.protocol.upper()),
    ]
    if rule.protocol.lower() != "any":
        rows += [("LocalPort:", _joined(rule.local_port)), ("RemotePort:", _joined(rule.remote_port))]
    rows.append(("Edge traversal:", "No"))
    if verbose:
        program = [("Program:", rule.program)] if rule.program else []
        rows += [*program, ("InterfaceTypes:", "Any"), ("Security:", "NotRequired"), ("Rule source:", "Local Setting")]
    rows.append(("Action:", rule.action.capitalize()))
    return [f"{'Rule Name:':<38}{rule.name}", _RULE, *(f"{label:<38}{value}".rstrip() for label, value in rows)]


def _shown_address(text: str) -> str:
    """A single address with the length of its prefix. No recording."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return text
    return f"{address}/{address.max_prefixlen}"


def _joined(items: Iterable[str]) -> str:
    return ",".join("Any" if item.lower() == "any" else item for item in items)


def _set_profile(process: WinProcess, words: list[str]) -> int:
    """``set PROFILE state on|off``, ``set PROFILE firewallpolicy IN,OUT``."""
    profiles = _PROFILE_SETS.get(words[0])
    firewall = process.machine.firewall
    if profiles and words[1] == "state" and words[2] in ("on", "off"):
        firewall.turn(profiles, on=words[2] == "on")
        return _succeed(process)
    if profiles and words[1] == "firewallpolicy" and words[2].count(",") == 1:
        firewall.set_policy(profiles, outbound_block=words[2].endswith(",blockoutbound"))
        return _succeed(process)
    return _fail(process, "A specified value is not valid.")


def _show_profile(process: WinProcess, words: list[str]) -> int:
    profiles = _PROFILE_SETS.get(words[0])
    if profiles is None:
        return _fail(process, "A specified value is not valid.")
    firewall = process.machine.firewall
    for profile in profiles:
        process.line()
        process.line(f"{profile} Profile Settings: ")
        process.line(_RULE)
        process.line(f"{'State':<38}{'ON' if firewall.state[profile] else 'OFF'}")
        if words[1:] != ["state"]:
            out = "BlockOutbound" if firewall.outbound_block[profile] else "AllowOutbound"
            process.line(f"{'Firewall Policy':<38}BlockInbound,{out}")
    return _succeed(process)


_RULE_VERBS: dict[str, Callable[[WinProcess, dict[str, str]], int]] = {
    "add": _add,
    "delete": _delete,
    "set": _set_rule,
    "show": _show,
}
