"""The application: wires inventories, experiments, plans and runs together. Never prints, never exits."""

import chaos.machines  # noqa: F401 - it hands in the drivers that inventories name
