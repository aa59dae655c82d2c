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


if __name__ == "__main__":
    run()
