"""Whether the kernel can reject packets before it routes them, tried in a separate namespace."""

from __future__ import annotations

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact

_TRIED, _LOADED = "tried", "loaded"
_TRIAL = """table inet nodefall {
	chain pods {
		type filter hook prerouting priority -150; policy accept;
		udp dport 53 counter reject
	}
}
"""


class NftEarlyReject(HostFact):
    """True or false: since Linux 5.9 (f53b9b0bdc59, netfilter: introduce support for reject at prerouting stage)."""

    name = "nft-early-reject"
    summary = "whether packets can be rejected before they are routed (nft, hook prerouting)"
    command = HostCommand(
        ("unshare", "--net", "sh", "-c", f"echo {_TRIED} && nft -f - && echo {_LOADED}"), stdin=_TRIAL, accept=(0, 1)
    )

    def parse(self, stdout: str, exit_code: int) -> bool:  # noqa: ARG002 - 1 if it cannot, and for unshare
        if _TRIED not in stdout.splitlines():
            raise ValueError("it cannot be tried in a network namespace (unshare, package util-linux)")
        return _LOADED in stdout.splitlines()


FACT = NftEarlyReject()
