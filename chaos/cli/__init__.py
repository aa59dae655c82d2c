"""Commands; the only place that prints and exits."""
