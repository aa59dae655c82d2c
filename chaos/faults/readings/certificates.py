"""Certificates of the kubelet, and the user as which it authenticates."""

from __future__ import annotations

import re

from chaos.core.command import HostCommand
from chaos.core.fact import Known, host_fact, lines
from chaos.faults.readings.disks import MOUNT

# client-go, util/certificate/certificate_store.go: a symbolic link to the file of the last rotation, which has the
# certificate and its private key.
CURRENT_FILE = "/var/lib/kubelet/pki/kubelet-client-current.pem"
ONLY_CERTIFICATES = "/^-----BEGIN CERTIFICATE-----$/,/^-----END CERTIFICATE-----/p"  # for sed -n
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----\n[A-Za-z0-9+/=\n]+-----END CERTIFICATE-----")
_PEM_LINES = ("-----(?:BEGIN|END) [A-Z ]+-----", "[A-Za-z0-9+/=]+")
# Form of an output: RFC 7468, in which only the last line of a text may be shorter.
CERTIFICATES = r"(?:-----BEGIN [A-Z ]+-----\n(?:[A-Za-z0-9+/]{64}\n)*[A-Za-z0-9+/=]{1,64}\n-----END [A-Z ]+-----\n)*"
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


# kubeadm and most others, k3s, rke2, k0s. Two of them also hold the private key, which is not printed.
CLIENT_CERTIFICATES = (
    CURRENT_FILE,
    "/var/lib/rancher/k3s/agent/client-kubelet.crt",
    "/var/lib/rancher/rke2/agent/client-kubelet.crt",
    "/var/lib/k0s/kubelet/pki/kubelet-client-current.pem",
)


@host_fact(
    "kubelet-user",
    "user as which the kubelet authenticates",
    HostCommand(("sed", "-n", ONLY_CERTIFICATES, *CLIENT_CERTIFICATES), accept=(0, 2)),  # 2: some files are missing
    form=CERTIFICATES,
)
def kubelet_user(stdout: str, _exit_code: int) -> str:  # missing files are expected
    """Text: common name of the client certificate, as ``system:node:worker-1``."""
    return find_kubelet_user(stdout)


# cmd/kubelet/app, initializeServerTLS: the certificate, then the CA that the kubelet made for it.
SERVING_CERTIFICATE = "/var/lib/kubelet/pki/kubelet.crt"
_CERTIFICATE_LINES = re.compile(r"-----BEGIN CERTIFICATE-----\n[A-Za-z0-9+/=\n]+-----END CERTIFICATE-----\n")


# The kubelet's self-signed serving certificate, which it uses unless serverTLSBootstrap is set.
@host_fact(
    "kubelet-certificate",
    "self-signed certificate of the kubelet, with its issuer",
    HostCommand(("cat", SERVING_CERTIFICATE)),
    form=CERTIFICATES,
)
def kubelet_certificate(stdout: str, exit_code: int) -> str:
    """Text in PEM. The key is in another file, which is not read."""
    certificates = _CERTIFICATE_LINES.findall(stdout)
    if exit_code != 0 or not certificates:
        raise ValueError(f"{SERVING_CERTIFICATE} contains no certificate")
    return "".join(certificates)


EXPIRED_FILE = "/run/nodefall-kubelet-client.pem"  # what certificate-expired mounts over it; a boot removes both
# Only the digest of the file, which has the private key too, leaves the host.
_CLIENT_SCRIPT = (
    'readlink "$1"; stat --dereference --format="mode=%a owner=%u:%g" "$1"; sha256sum "$1"; '
    'openssl x509 -noout -checkend 0 -in "$1"; stat --format="prepared=%n" "$2"; cat /proc/self/mountinfo; '
    'echo processes; pgrep -x kubelet; echo former; cat "$2.pid"; echo file; readlink --canonicalize "$1"'
)
_TITLES = ("processes", "former", "file")
_ESCAPE = re.compile(r"\\([0-7]{3})")  # of mountinfo
_CLIENT_LINE = re.compile(
    r"(?P<target>/var/lib/kubelet/pki/kubelet-client-[0-9-]+\.pem)"
    r"|mode=(?P<mode>[0-7]+) owner=(?P<owner>\d+:\d+)|(?P<digest>[0-9a-f]{64}) .*"
    r"|Certificate will (?P<valid>not )?expire|prepared=(?P<prepared>\S+)"
)


# The client certificate that a kubelet of kubeadm's layout starts with, and whether one is mounted over it.
@host_fact(
    "kubelet-client-certificate",
    "client certificate of the kubelet: its file, and whether it has expired",
    HostCommand(("sh", "-c", _CLIENT_SCRIPT, "nodefall", CURRENT_FILE, EXPIRED_FILE)),
    form=lines(_CLIENT_LINE, MOUNT, r"\d+", "/[^\\n]+", *_TITLES),
)
def kubelet_client_certificate(stdout: str, exit_code: int) -> dict[str, str | bool]:
    """Mapping ``{"target": "/var/lib/kubelet/pki/kubelet-client-2026-01-31-10-00-00.pem", "mode": "600",
    "owner": "0:0", "sha256": "9f2c...", "expired": true, "mounted": true, "prepared": true, "former-process": false}``.

    ``target`` of the symbolic link; the rest of what is read through it. ``mounted``: another file is mounted over the
    target. ``prepared``: the file that certificate-expired mounts exists. ``former-process``, only if it is mounted: a
    kubelet still runs that ran when that was done, or one may: which did is not noted yet, or the action was cut off.
    """
    head, processes, former, file = _sections(stdout)
    found: dict[str, str | None] = {}
    mounts = set()
    for line in head:
        if match := _CLIENT_LINE.fullmatch(line):
            found |= {key: value for key, value in match.groupdict().items() if value}
            found |= {"checked": line} if line.startswith("Certificate will ") else {}
        elif len(fields := line.split()) > 5:
            mounts.add(_ESCAPE.sub(lambda code: chr(int(code[1], 8)), fields[4]))  # proc_pid_mountinfo(5)
    target, digest = found.get("target"), found.get("digest")
    if exit_code or not mounts or not target or not digest or not file:
        raise ValueError(f"{CURRENT_FILE} is not a symbolic link to a file of the kubelet")
    if "checked" not in found:
        raise ValueError(f"openssl is not installed, or does not understand {CURRENT_FILE}")
    is_mounted = file[0] in mounts  # the kernel names it without symbolic links, as of /var/lib/kubelet
    may_run = not former or not set(processes).isdisjoint(former)
    return {
        "target": target,
        "mode": found.get("mode") or "",
        "owner": found.get("owner") or "",
        "sha256": digest,
        "expired": "valid" not in found,
        "mounted": is_mounted,
        "prepared": "prepared" in found,
        **({"former-process": may_run} if is_mounted else {}),
    }


def _sections(stdout: str) -> list[list[str]]:
    """The lines before the script's first title and after each title. Raises ValueError if a title is missing."""
    sections: list[list[str]] = [[]]
    for line in stdout.splitlines():
        if line in _TITLES:
            sections.append([])
        else:
            sections[-1].append(line)
    if len(sections) != len(_TITLES) + 1:
        raise ValueError("the host did not answer")
    return sections


# Of the kubeconfig only paths leave the host: values of client-certificate-data and client-key-data begin otherwise.
_PATHS = "client-[a-z-]+: */[^ ]*"
_CREDENTIALS_SCRIPT = 'date +%s; stat --format="bootstrap=%n" "$1"; grep -hsoE "$2" "$3"; sed -n "$4" "$5"; true'
_CREDENTIALS_LINE = re.compile(r"(?P<now>\d{9,})|bootstrap=(?P<bootstrap>\S+)|(?P<key>client-[a-z-]+): *(?P<path>\S+)")


def _kubelet_credentials_command(known: Known) -> HostCommand:
    flags = known["kubelet-flags"]
    paths = (flags.get("bootstrap-kubeconfig", ""), _PATHS, flags.get("kubeconfig", ""))
    return HostCommand(("sh", "-c", _CREDENTIALS_SCRIPT, "nodefall", *paths, ONLY_CERTIFICATES, CURRENT_FILE))


@host_fact(
    "kubelet-credentials",
    "kubeconfig of the kubelet, its bootstrap kubeconfig, and when its certificate may be renewed",
    _kubelet_credentials_command,
    needs=("kubelet-flags",),
    form=lines(_CREDENTIALS_LINE, *_PEM_LINES),
)
def kubelet_credentials(stdout: str, exit_code: int) -> dict[str, str | bool | int]:
    """Mapping ``{"user": "system:node:worker-1", "rotated-file": true, "bootstrap": "",
    "renewal-in": 7776000}``.

    ``rotated-file``: the kubeconfig names kubelet-client-current.pem as certificate and key. ``bootstrap``: path of the
    bootstrap kubeconfig, with which the kubelet would ask for another certificate; "" if there is no such file.
    ``renewal-in``: seconds until the kubelet may renew its certificate, negative if it may have to at any time.
    """
    rows = [match for line in stdout.splitlines() if (match := _CREDENTIALS_LINE.fullmatch(line))]
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
