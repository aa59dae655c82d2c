"""Client certificates of kubelets."""

from __future__ import annotations

import re

_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----\n[A-Za-z0-9+/=\n]+-----END CERTIFICATE-----")


def find_kubelet_user(text: str) -> str:
    """The one common name ``system:node:NAME`` of the certificates in ``text``. Raises ValueError."""
    certificates = _CERTIFICATE.findall(text.replace("\r", ""))
    names = {name for name in map(_common_name, certificates) if name.startswith("system:node:")}
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
