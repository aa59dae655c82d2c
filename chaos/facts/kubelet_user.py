"""The user as which the kubelet authenticates: ``system:node:NAME``, by its client certificate."""

from __future__ import annotations

import re

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact

# kubeadm and most others, k3s, rke2. The first file also holds the private key, which is not printed.
FILES = (
    "/var/lib/kubelet/pki/kubelet-client-current.pem",
    "/var/lib/rancher/k3s/agent/client-kubelet.crt",
    "/var/lib/rancher/rke2/agent/client-kubelet.crt",
)
_ONLY_CERTIFICATES = "/^-----BEGIN CERTIFICATE-----$/,/^-----END CERTIFICATE-----/p"
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----\n[A-Za-z0-9+/=\n]+-----END CERTIFICATE-----")


class KubeletUser(HostFact):
    """Text: common name of the client certificate, as ``system:node:worker-1``."""

    name = "kubelet-user"
    summary = "user as which the kubelet authenticates"
    command = HostCommand(("sed", "-n", _ONLY_CERTIFICATES, *FILES), accept=(0, 2))  # 2: some files are missing

    def parse(self, stdout: str, exit_code: int) -> str:  # noqa: ARG002 - missing files are expected
        names = {name for name in map(_common_name, _CERTIFICATE.findall(stdout)) if name.startswith("system:node:")}
        if len(names) != 1:
            raise ValueError(f"the host has {'several' if names else 'no'} client certificates of a kubelet")
        return names.pop()


def _common_name(pem: str) -> str:
    """The common name of a certificate's subject, "" if it has none. Raises ValueError."""
    from cryptography.x509 import InvalidVersion, load_pem_x509_certificate  # noqa: PLC0415 - slow
    from cryptography.x509.oid import NameOID  # noqa: PLC0415

    try:
        attributes = load_pem_x509_certificate(pem.encode()).subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    except InvalidVersion as error:
        raise ValueError(f"the host has a certificate of an unknown version: {error}") from error
    return str(attributes[0].value) if attributes else ""


FACT = KubeletUser()
