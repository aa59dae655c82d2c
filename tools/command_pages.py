"""Write docs/commands.md from the commands themselves.

Run `python tools/command_pages.py` after a change of a command's help or options; a test compares.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import click

from chaos.cli.app import PROGRAM, cli
from chaos.cli.lazy import COMMANDS
from chaos.core.errors import Exit

PAGE = Path(__file__).parents[1] / "docs" / "commands.md"
# Every command has them; they are described once.
EVERYWHERE = ("help", "verbose", "log_file")
MEANING = {
    Exit.HELD: "every expectation held; a command without verdicts did what it should",
    Exit.VIOLATED: "an expectation was violated",
    Exit.INCONCLUSIVE: "inconclusive, or aborted",
    Exit.UNDO_PENDING: "an undo is pending; takes precedence over 1 and 2",
    Exit.REFUSED: "refused, without side effects",
    Exit.USAGE: "bad input or usage",
    Exit.BUG: "a bug of nodefall; the message names a file with the traceback",
    Exit.SIGINT: "interrupted by Ctrl-C, and undone",
    Exit.SIGTERM: "interrupted by SIGTERM, and undone",
}
_HEAD = """\
<!-- Written by tools/command_pages.py from the commands. -->

# Commands

`nodefall COMMAND --help` prints the same. Every command takes `-v` (log to stderr), `-vv` (every API request
and host command, too) and `--log-file FILE`. `--json` prints one object on stdout, `{"error": {code, message,
hint}}` if there is no result; progress goes to stderr. `nodefall completion SHELL` makes bash, zsh or fish
complete commands, experiments, inventories, targets and runs.

An EXPERIMENT is a file, or the name of a [bundled experiment](../experiments/README.md), such as
`graceful-poweroff`. A file or directory of that name has precedence."""


def page() -> str:
    """The text of the page."""
    return "\n\n".join([_HEAD, _overview(), _exit_codes(), *_sections()]) + "\n"


def _overview() -> str:
    rows = (f"| [`{PROGRAM} {name}`](#{PROGRAM}-{name}) | {short} |" for name, (_, short) in COMMANDS.items())
    return "\n".join(["| command | effect |", "|---|---|", *rows])


def _exit_codes() -> str:
    rows = (f"| {code.value} | {text} |" for code, text in MEANING.items())
    return "\n".join(["## Exit codes", "", "| code | meaning |", "|---|---|", *rows])


def _sections() -> Iterator[str]:
    context = click.Context(cli, info_name=PROGRAM)
    for name in COMMANDS:
        command = cli.get_command(context, name) or cli
        yield from _section(command, click.Context(command, parent=context, info_name=name), 2)


def _section(command: click.Command, context: click.Context, level: int) -> Iterator[str]:
    """A command and those below it."""
    yield f"{'#' * level} {context.command_path}"
    yield f"`{' '.join([context.command_path, *command.collect_usage_pieces(context)])}`"
    yield from _prose(command.help or "")
    options = [param for param in command.params if isinstance(param, click.Option) and param.name not in EVERYWHERE]
    if options:
        yield "\n".join(["| option | |", "|---|---|", *(_row(option, context) for option in options)])
    if command.epilog:
        yield "\n".join(["```", *_examples(command.epilog), "```"])
    for name, below in getattr(command, "commands", {}).items():
        yield from _section(below, click.Context(below, parent=context, info_name=name), level + 1)


def _prose(text: str) -> Iterator[str]:
    """The paragraphs of a help text; one that click must not wrap is shown as written."""
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        if paragraph.startswith("\b\n"):
            yield "\n".join(["```", paragraph.removeprefix("\b\n"), "```"])
        else:
            yield " ".join(paragraph.split())


def _row(option: click.Option, context: click.Context) -> str:
    names, text = option.get_help_record(context) or ("", "")
    cells = (re.sub(r"\s+", " ", cell).replace("|", "\\|") for cell in (names, text))
    return "| `{}` | {} |".format(*cells)


def _examples(epilog: str) -> Iterator[str]:
    """The lines of an epilog below its heading."""
    for line in epilog.splitlines():
        if line.strip() not in ("", "\b", "Examples:"):
            yield line.removeprefix("  ")


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
