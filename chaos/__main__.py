"""``python -m chaos``."""

from chaos.cli.main import run

if __name__ == "__main__":
    run()
