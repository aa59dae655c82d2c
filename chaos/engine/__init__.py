"""Phases of a run: arm, inject, observe, undo, judge."""
