"""The keys that known_hosts has of a host: the same as those that a connection accepts."""

from __future__ import annotations

import base64
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.machines.transports.host_keys import KnownKeys, fingerprint, parse_known_hosts

A, B = (base64.b64encode(text).decode() for text in (b"key a", b"key b"))
KEY_A, KEY_B = f"ssh-ed25519 {fingerprint(b'key a')}", f"ssh-rsa {fingerprint(b'key b')}"
_SALT = b"0123456789abcdefghij"
HASHED = "|".join(
    ["", "1", *(base64.b64encode(part).decode() for part in (_SALT, hmac.new(_SALT, b"h1", "sha1").digest()))]
)


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("", set()),
        (f"h1 ssh-ed25519 {A}\nh2 ssh-rsa {B}", {KEY_A}),
        (f"h2,H1 ssh-ed25519 {A}\nh1 ssh-rsa {B}", {KEY_A, KEY_B}),
        (f"* ssh-ed25519 {A}", {KEY_A}),
        (f"h?,!h1 ssh-ed25519 {A}", set()),
        (f"{HASHED} ssh-rsa {B}", {KEY_B}),
        (f"[h1]:2222 ssh-rsa {B}", set()),
        (f"@revoked h1 ssh-rsa {B}\n@cert-authority h1 ssh-rsa {B}", set()),
    ],
)
def test_keys_of_a_host(text: str, keys: set[str]) -> None:
    assert KnownKeys(parse_known_hosts(text)).of("h1") == keys


NAMES = st.lists(st.sampled_from(["h1", "h2", "*", "h?", "!h1", "!*", HASHED, "[h1]:2222"]), min_size=1, max_size=3)


@given(st.lists(st.tuples(NAMES, st.sampled_from([f"ssh-ed25519 {A}", f"ssh-rsa {B}"])), max_size=4))
def test_the_index_agrees_with_the_entries(lines: list[tuple[list[str], str]]) -> None:
    entries = parse_known_hosts("\n".join(f"{','.join(names)} {key}" for names, key in lines))
    known = KnownKeys(entries)
    for name in ("h1", "h2", "[h1]:2222"):
        expected = {f"{entry.type} {fingerprint(entry.key)}" for entry in entries if entry.covers(name)}
        assert known.of(name) == expected
