"""Packet filters: nft(8) and iptables(8)."""

from __future__ import annotations

import re

from chaos.core.command import HostCommand
from chaos.core.fact import host_fact, lines


@host_fact("nft", "version of nft(8)", HostCommand(("nft", "--version")), form=r"nftables v\d[^\n]*\n")
def nft(stdout: str, exit_code: int) -> str:
    """Text: the version, as ``1.0.6``."""
    match = re.search(r"v(\d+(?:\.\d+)+)", stdout)
    if exit_code or not match:
        raise ValueError("there is no nft on the host (package nftables)")
    return match[1]


_TRIED, _LOADED = "tried", "loaded"
_REJECT_TRIAL = """table inet nodefall {
	chain pods {
		type filter hook prerouting priority -150; policy accept;
		udp dport 53 counter reject
	}
}
"""


# Whether the kernel can reject packets before it routes them, tried in a separate namespace.
@host_fact(
    "nft-early-reject",
    "whether packets can be rejected before they are routed (nft, hook prerouting)",
    HostCommand(
        ("unshare", "--net", "sh", "-c", f"echo {_TRIED} && nft -f - && echo {_LOADED}"),
        stdin=_REJECT_TRIAL,
        accept=(0, 1),
    ),
    form=rf"(?:{_TRIED}\n)?(?:{_LOADED}\n)?",
)
def nft_early_reject(stdout: str, _exit_code: int) -> bool:  # 1 if it cannot, and for unshare
    """True or false: since Linux 5.9 (f53b9b0bdc59, netfilter: introduce support for reject at prerouting stage)."""
    if _TRIED not in stdout.splitlines():
        raise ValueError("it cannot be tried in a network namespace (unshare, package util-linux)")
    return _LOADED in stdout.splitlines()


TABLE = "inet nodefall"
_END_OF_TABLES = "listed"
_PACKETS = re.compile(r"counter packets (\d+) ")


@host_fact(
    "nft-rules",
    "whether nodefall's packet filter table exists, and the packets it has dropped",
    HostCommand(("sh", "-c", f"nft list tables && echo {_END_OF_TABLES} && nft list table {TABLE}"), accept=(0, 1)),
    form=lines("table [^\\n]+") + rf"(?:{_END_OF_TABLES}\n)?" + lines("table [^\\n]+", r"[\t}][^\n]*", ""),
)
def nft_rules(stdout: str, exit_code: int) -> bool | dict[str, int]:
    """False without that table, else the mapping ``{"packets": N}``: the packets that its rules have dropped."""
    if _END_OF_TABLES not in stdout.splitlines():  # sudo exits with 1 too, where it is not permitted
        raise ValueError("nft did not answer")
    if exit_code:
        return False
    return {"packets": sum(int(number) for number in _PACKETS.findall(stdout))}


# The legacy tables are read only where the kernel has them: reading loads the module.
_IPTABLES_SCRIPT = """echo legacy
grep -qs . /proc/net/ip_tables_names && iptables-legacy-save
grep -qs . /proc/net/ip6_tables_names && ip6tables-legacy-save
echo nft
iptables-nft-save && ip6tables-nft-save"""
_DUMP = lines(r"[#*:\[-][^\n]*", "COMMIT", "")  # iptables-save(8)


# Rules of iptables. It has two back ends, and neither shows the rules of the other.
@host_fact(
    "iptables",
    "rules of iptables by back end and table",
    HostCommand(("sh", "-c", _IPTABLES_SCRIPT)),
    form=rf"legacy\n{_DUMP}nft\n{_DUMP}",
)
def iptables(stdout: str, exit_code: int) -> dict[str, dict[str, int]]:
    """Mapping ``{"legacy": {"filter": 3}, "nft": {"nat": 41}}``: number of rules by table, of both families."""
    if exit_code or not stdout.startswith("legacy\n"):
        raise ValueError("there is no iptables on the host")
    legacy, _, nft = stdout.partition("\nnft\n")
    return {"legacy": _rules(legacy), "nft": _rules(nft)}


def _rules(dump: str) -> dict[str, int]:
    counts: dict[str, int] = {}
    table = ""
    for line in dump.splitlines():
        if match := re.match(r"\*(\w+)$", line):
            table = match[1]
        elif line.startswith("-A "):
            counts[table] = counts.get(table, 0) + 1
    return counts
