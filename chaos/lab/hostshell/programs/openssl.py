"""openssl: a key, a certificate of it, the same with another validity, and whether one has expired."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from cryptography.x509 import load_pem_x509_certificate

from chaos.lab.hostshell.process import Process, Program
from chaos.lab.hostshell.programs.files import read_file
from chaos.lab.node.kubelet.client_certificate import has_expired, make_certificate, private_key

_DEFAULT_DAYS = 30  # of openssl req
_WORDS = {  # of the simulated forms; None: any value
    "genpkey": ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", None],
    "req": ["-x509", "-new", "-key", None, "-subj", None, "-out", None],
    "x509": ["-in", None, "-signkey", None, "-days", "0"],
}
_CHECK = ["-noout", "-checkend", "0", "-in", None]


def _values(words: list[str], form: list[str | None]) -> list[str] | None:
    """The values of a form; None if the words have another one."""
    if len(words) != len(form) or any(part not in (None, word) for word, part in zip(words, form, strict=True)):
        return None
    return [word for word, part in zip(words, form, strict=True) if part is None]


async def openssl(process: Process, argv: list[str]) -> int:
    """``genpkey``, ``req -x509``, ``x509 -signkey ... -days 0`` and ``x509 -checkend 0``."""
    verb, words = (argv[1], argv[2:]) if len(argv) > 1 else ("", [])
    if verb == "x509" and (values := _values(words, _CHECK)):
        return _check(process, values[0])
    values = _values(words, _WORDS.get(verb, []))
    if not values:
        return process.fail(f"openssl: the lab does not simulate openssl {' '.join(argv[1:])}")
    output = values[-1] if verb != "x509" else ""
    if output and not (process.is_root and output.startswith("/run/")):
        return process.fail(f'Can\'t open "{output}" for writing, Permission denied')
    if verb == "genpkey":
        process.host.run_files[output] = private_key()
        return 0
    now = datetime.fromtimestamp(process.host.sim.now, UTC)
    if verb == "req":
        process.host.run_files[output] = make_certificate(values[1], now, now + timedelta(days=_DEFAULT_DAYS))
        return 0
    return _sign_again(process, values[0], now)


def _sign_again(process: Process, path: str, now: datetime) -> int:
    """Write the certificate with a validity that ends now."""
    text, why = read_file(process, path)
    if text is None:
        return process.fail(f"Can't open {path} for reading, {why}")
    organization, name = (str(attribute.value) for attribute in load_pem_x509_certificate(text.encode()).subject)
    process.out(make_certificate(f"/O={organization}/CN={name}", now, now))
    return 0


def _check(process: Process, path: str) -> int:
    text, why = read_file(process, path)
    if text is None:
        return process.fail(f"Can't open {path} for reading, {why}")
    expired = has_expired(text, process.host.sim.now)
    process.out(f"Certificate will {'' if expired else 'not '}expire\n")
    return int(expired)


PROGRAMS: dict[str, Program] = {"openssl": openssl}
