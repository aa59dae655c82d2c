"""The entry point. ``--version`` alone is answered before click is imported: that is most of its time."""

from __future__ import annotations

import sys

from chaos import __version__


def run() -> None:
    """Run the command line of this process and exit."""
    if sys.argv[1:] == ["--version"]:
        sys.stdout.write(f"nodefall, version {__version__}\n")
        return
    from chaos.cli import app  # noqa: PLC0415

    app.run()


def run_as_plugin() -> None:
    """``kubectl nodefall``: the same commands. The options of kubectl stand after them, as for every plug-in."""
    sys.argv[0] = "nodefall"
    run()


def complete_for_kubectl() -> None:
    """``kubectl_complete-nodefall WORD ...``: what may be the last word, a line each, then kubectl's directive."""
    from click.shell_completion import ShellComplete  # noqa: PLC0415

    from chaos.cli.app import cli  # noqa: PLC0415

    *before, incomplete = sys.argv[1:] or [""]
    found = ShellComplete(cli, {}, "nodefall", "_NODEFALL_COMPLETE").get_completions(before, incomplete)
    for item in found:
        if item.type == "plain":
            sys.stdout.write(f"{item.value}\t{item.help}\n" if item.help else f"{item.value}\n")
    is_file = any(item.type != "plain" for item in found)
    sys.stdout.write(":0\n" if is_file else ":4\n")  # cobra: the shell's own completion of files, or none


if __name__ == "__main__":
    run()
