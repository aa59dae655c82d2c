"""``nodefall completion``."""

from __future__ import annotations

import click
from click.shell_completion import ShellComplete, get_completion_class

from chaos.cli.lazy import examples


@click.command(
    epilog=examples(
        "nodefall completion bash > ~/.local/share/bash-completion/completions/nodefall",
        "nodefall completion zsh > ~/.zfunc/_nodefall",
        "nodefall completion fish > ~/.config/fish/completions/nodefall.fish",
    )
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a shell."""
    completer = get_completion_class(shell)
    if completer is None:
        raise click.UsageError(f"no completion for {shell}", ctx)
    instance = completer(ctx.find_root().command, {}, "nodefall", "_NODEFALL_COMPLETE")
    click.echo(ShellComplete.source(instance))  # BashComplete would run bash to check its version
