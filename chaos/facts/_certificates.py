"""Client certificates of kubelets."""

from __future__ import annotations

import re

# client-go, util/certificate/certificate_store.go: a symbolic link to the file of the last rotation, which has the
# certificate and its private key.
CURRENT_FILE = "/var/lib/kubelet/pki/kubelet-client-current.pem"
ONLY_CERTIFICATES = "/^-----BEGIN CERTIFICATE-----$/,/^-----END CERTIFICATE-----/p"  # for sed -n
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----\n[A-Za-z0-9+/=\n]+-----END CERTIFICATE-----")
_EARLIEST_RENEWAL = 0.7  # of the validity


def find_kubelet_user(text: str) -> str:
    """The one common name ``system:node:NAME`` of the certificates in ``text``. Raises ValueError."""
    certificates = _CERTIFICATE.findall(text.replace("\r", ""))
    names = {name for name in map(_common_name, certificates) if name.startswith("system:node:")}
    if len(names) != 1:
        raise ValueError(f"the host has {'several' if names else 'no'} client certificates of a kubelet")
    return names.pop()


def seconds_to_renewal(text: str, now: float) -> int:
    """Seconds until the kubelet may renew the one certificate in ``text``. Raises ValueError.

    It does so after 70 to 90 % of the validity (client-go, util/certificate/certificate_manager.go, jitteryDuration).
    """
    from cryptography.x509 import load_pem_x509_certificate  # noqa: PLC0415 - slow

    found = _CERTIFICATE.findall(text.replace("\r", ""))
    if len(found) != 1:
        raise ValueError(f"the kubelet's file has {len(found)} certificates")
    certificate = load_pem_x509_certificate(found[0].encode())
    begin, end = certificate.not_valid_before_utc.timestamp(), certificate.not_valid_after_utc.timestamp()
    return int(begin + _EARLIEST_RENEWAL * (end - begin) - now)


def _common_name(pem: str) -> str:
    """The common name of a certificate's subject, "" if it has none. Raises ValueError."""
    from cryptography.x509 import InvalidVersion, load_pem_x509_certificate  # noqa: PLC0415 - slow
    from cryptography.x509.oid import NameOID  # noqa: PLC0415

    try:
        attributes = load_pem_x509_certificate(pem.encode()).subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    except InvalidVersion as error:
        raise ValueError(f"the host has a certificate of an unknown version: {error}") from error
    return str(attributes[0].value) if attributes else ""
