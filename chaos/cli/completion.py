"""``nodefall completion``."""

from __future__ import annotations

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

from chaos.cli.lazy import examples


@click.command(
    epilog=examples(
        "nodefall completion bash > ~/.local/share/bash-completion/completions/nodefall",
        "nodefall completion zsh > ~/.zfunc/_nodefall",
        "nodefall completion fish > ~/.config/fish/completions/nodefall.fish",
    )
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script of a shell."""
    click.echo(script_of(shell))


def script_of(shell: str) -> str:
    """The script that makes a shell ask this program. Raises KeyError for an unknown shell."""
    completer = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}[shell]
    instance = completer(click.Command("nodefall"), {}, "nodefall", "_NODEFALL_COMPLETE")
    return ShellComplete.source(instance)  # BashComplete would run bash to check its version
