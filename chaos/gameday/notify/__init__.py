"""Delivers events of a game day: one file per kind of receiver."""
