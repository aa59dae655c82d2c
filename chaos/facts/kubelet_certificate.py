"""What a kubelet serves with that signed its certificate itself: unless serverTLSBootstrap is set each does."""

from __future__ import annotations

import re

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact

# cmd/kubelet/app, initializeServerTLS: its certificate, then the CA that it made for it.
FILE = "/var/lib/kubelet/pki/kubelet.crt"
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----\n[A-Za-z0-9+/=\n]+-----END CERTIFICATE-----\n")


class KubeletCertificate(HostFact):
    """PEM. The key is in another file, and stays there."""

    name = "kubelet-certificate"
    summary = "certificate that the kubelet signed itself, with its issuer"
    command = HostCommand(("cat", FILE))

    def parse(self, stdout: str, exit_code: int) -> str:
        found = _CERTIFICATE.findall(stdout)
        if exit_code != 0 or not found:
            raise ValueError(f"{FILE} holds no certificate")
        return "".join(found)


FACT = KubeletCertificate()
