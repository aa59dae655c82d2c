"""The kubelet's self-signed serving certificate, which it uses unless serverTLSBootstrap is set."""

from __future__ import annotations

import re

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact

# cmd/kubelet/app, initializeServerTLS: the certificate, then the CA that the kubelet made for it.
FILE = "/var/lib/kubelet/pki/kubelet.crt"
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----\n[A-Za-z0-9+/=\n]+-----END CERTIFICATE-----\n")


class KubeletCertificate(HostFact):
    """Text in PEM. The key is in another file, which is not read."""

    name = "kubelet-certificate"
    summary = "self-signed certificate of the kubelet, with its issuer"
    command = HostCommand(("cat", FILE))

    def parse(self, stdout: str, exit_code: int) -> str:
        certificates = _CERTIFICATE.findall(stdout)
        if exit_code != 0 or not certificates:
            raise ValueError(f"{FILE} contains no certificate")
        return "".join(certificates)


FACT = KubeletCertificate()
