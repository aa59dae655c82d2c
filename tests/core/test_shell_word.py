"""A word of a printed command is that word in every shell."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from chaos.core.text import shell_word

WORDS = [
    "plain", "with space", "it's", 'a "b"', "$HOME `id` $(id)", "back\\slash", "two\\\\", "end\\", "\\'", "~", "~/x",
    "a*?[b]", "{a,b}", "#x", "!x", "a;b|c&d", "=ls", "", "äöü", "-n",
]  # fmt: skip


@pytest.mark.parametrize("shell", ["bash", "zsh", "dash", "fish", "sh"])
def test_every_shell_reads_it_as_one_word(shell: str) -> None:
    if not shutil.which(shell):
        pytest.skip(f"there is no {shell}")
    script = "printf '<%s>' " + " ".join(map(shell_word, WORDS))
    done = subprocess.run([shell, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("".join(f"<{word}>" for word in WORDS), "")
