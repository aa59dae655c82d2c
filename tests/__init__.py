"""Tests of nodefall."""
