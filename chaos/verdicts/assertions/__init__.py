"""Assertions: one module per assertion, each with ``ASSERTION``."""
