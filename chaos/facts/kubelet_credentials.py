"""How the kubelet authenticates, and whether and when it gets another client certificate by itself."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from chaos.facts._certificates import CURRENT_FILE, ONLY_CERTIFICATES, find_kubelet_user, seconds_to_renewal
from chaos.model.command import HostCommand
from chaos.model.fact import HostFact

# Of the kubeconfig only paths leave the host: values of client-certificate-data and client-key-data begin otherwise.
_PATHS = "client-[a-z-]+: */[^ ]*"
_SCRIPT = 'date +%s; stat --format="bootstrap=%n" "$1"; grep -hsoE "$2" "$3"; sed -n "$4" "$5"; true'
_LINE = re.compile(r"(?P<now>\d{9,})|bootstrap=(?P<bootstrap>\S+)|(?P<key>client-[a-z-]+): *(?P<path>\S+)")


class KubeletCredentials(HostFact):
    """Mapping ``{"user": "system:node:worker-1", "rotated-file": true, "bootstrap": "",
    "renewal-in": 7776000}``.

    ``rotated-file``: the kubeconfig names kubelet-client-current.pem as certificate and key. ``bootstrap``: path of the
    bootstrap kubeconfig, with which the kubelet would ask for another certificate; "" if there is no such file.
    ``renewal-in``: seconds until the kubelet may renew its certificate, negative if it may have to at any time.
    """

    name = "kubelet-credentials"
    summary = "kubeconfig of the kubelet, its bootstrap kubeconfig, and when its certificate may be renewed"
    needs = ("kubelet-flags",)

    def command_for(self, known: Mapping[str, Any]) -> HostCommand:
        flags = known["kubelet-flags"]
        paths = (flags.get("bootstrap-kubeconfig", ""), _PATHS, flags.get("kubeconfig", ""))
        return HostCommand(("sh", "-c", _SCRIPT, "nodefall", *paths, ONLY_CERTIFICATES, CURRENT_FILE))

    def parse(self, stdout: str, exit_code: int) -> dict[str, str | bool | int]:
        rows = [match for line in stdout.splitlines() if (match := _LINE.fullmatch(line))]
        now = next((int(row["now"]) for row in rows if row["now"]), None)
        if exit_code or now is None:
            raise ValueError("the host did not answer")
        named = {row["key"]: row["path"].strip("\"'") for row in rows if row["key"]}
        return {
            "user": find_kubelet_user(stdout),
            "rotated-file": named == {"client-certificate": CURRENT_FILE, "client-key": CURRENT_FILE},
            "bootstrap": next((row["bootstrap"] for row in rows if row["bootstrap"]), ""),
            "renewal-in": seconds_to_renewal(stdout, now),
        }


FACT = KubeletCredentials()
