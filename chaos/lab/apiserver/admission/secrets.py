"""Admission of Secrets, which nothing in the lab uses. Errors contain no values.

Sources: pkg/apis/core/v1/conversion.go (stringData), pkg/apis/core/validation ValidateSecret, ValidateSecretUpdate.
"""

from __future__ import annotations

import base64
import binascii

from chaos.lab.apiserver.admission.defaults import InvalidError
from chaos.lab.objects.accessors import Object

_MAX_BYTES = 1 << 20
_REQUIRED_KEYS = {
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}


def admit_secret(secret: Object, before: Object | None = None) -> None:
    """Check a Secret and convert its stringData to data in place. Raises InvalidError."""
    written = secret.pop("stringData", None) or {}
    if written:
        texts = {key: base64.b64encode(text.encode()).decode() for key, text in written.items()}
        secret["data"] = {**(secret.get("data") or {}), **texts}
    secret["type"] = secret.get("type") or "Opaque"
    data = secret.get("data") or {}
    if sum(_size(key, value) for key, value in data.items()) > _MAX_BYTES:
        raise InvalidError(f"data: Too long: must have at most {_MAX_BYTES} bytes")
    for key in _REQUIRED_KEYS.get(secret["type"], ()):
        if key not in data:
            raise InvalidError(f"data[{key}]: Required value")
    if before is not None:
        _check_update(secret, before)


def _check_update(secret: Object, before: Object) -> None:
    if secret["type"] != before["type"]:
        raise InvalidError(f'type: Invalid value: "{secret["type"]}": field is immutable')
    if not before.get("immutable"):
        return
    if not secret.get("immutable"):
        raise InvalidError("immutable: Forbidden: field is immutable when `immutable` is set")
    if (secret.get("data") or {}) != (before.get("data") or {}):
        raise InvalidError("data: Forbidden: field is immutable when `immutable` is set")


def _size(key: str, value: str | None) -> int:
    try:
        return len(base64.b64decode(value or "", validate=True))
    except binascii.Error as error:
        raise InvalidError(f'data[{key}]: Invalid value: "": illegal base64 data') from error
