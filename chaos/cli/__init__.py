"""Commands; the only place that wires things, reads the environment, prints and exits."""
