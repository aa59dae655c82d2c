"""Defaults and validation on writes."""
