"""The command line: the only place that prints and exits."""

import chaos.app  # noqa: F401 - it hands in the drivers that inventories name
