"""Observers: one module per source. Each emits recording entries with receipt times, and its own blind windows."""
