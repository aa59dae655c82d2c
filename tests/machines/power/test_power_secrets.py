from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from chaos.core.errors import Refused
from chaos.core.field_types import Secret
from chaos.machines.power.local import SecretContext, read_secret

HIDDEN = "hunter2-secret"


def read(folder: Path, **fields: Any) -> str:
    return read_secret(Secret(**fields), SecretContext({"PW": HIDDEN, "EMPTY": ""}, folder, folder))


def test_env(tmp_path: Path) -> None:
    assert read(tmp_path, env="PW") == HIDDEN


@pytest.mark.parametrize(
    ("content", "expected"), [(HIDDEN, HIDDEN), (HIDDEN + "\n", HIDDEN), (" a b \n\n", " a b \n"), ("x\r\n", "x")]
)
@pytest.mark.parametrize("name", ["pw", "~/pw"])
def test_file(tmp_path: Path, content: str, expected: str, name: str) -> None:
    path = tmp_path / "pw"
    path.write_bytes(content.encode())
    path.chmod(0o600)
    assert read(tmp_path, file=name) == expected


def test_command_is_run_without_a_shell(tmp_path: Path) -> None:
    assert read(tmp_path, command=["printf", "%s\\n", "$HOME;x"]) == "$HOME;x"


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"env": "NONE"}, "environment variable NONE is not set"),
        ({"env": "EMPTY"}, "not set or empty"),
        ({"file": "none"}, "cannot be read: No such file"),
        ({"file": "."}, "cannot be read: Is a directory"),
        ({"file": "binary"}, "is not UTF-8"),
        ({"file": "loose"}, "can be written by others"),
        ({"command": ["no-such-program-here"]}, "failed: No such file"),
        ({"command": ["sh", "-c", f"echo {HIDDEN}; echo {HIDDEN} >&2; exit 3"]}, "'sh' ended with exit code 3"),
        ({"command": ["true"]}, "not set or empty"),
        ({"command": ["printf", "\\377"]}, "UnicodeDecodeError"),
    ],
)
def test_refused_without_the_secret(
    tmp_path: Path, fields: dict[str, Any], error: str, caplog: pytest.LogCaptureFixture
) -> None:
    tmp_path.chmod(0o700)
    for name, content, mode in (("binary", b"\xff" + HIDDEN.encode(), 0o600), ("loose", HIDDEN.encode(), 0o666)):
        (tmp_path / name).write_bytes(content)
        (tmp_path / name).chmod(mode)
    with caplog.at_level(logging.DEBUG), pytest.raises(Refused, match=error) as caught:
        read(tmp_path, **fields)
    assert HIDDEN not in f"{caught.value!r} {caught.value.hint} {caught.value.__cause__!r} {caplog.text}"
