"""Renderers: pure functions from a RunResult and its Timeline to text, one module each, and the code they share."""
