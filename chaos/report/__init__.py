"""Renderers: a result and its timeline in, text out. One file each; ``_`` modules are what they share."""
