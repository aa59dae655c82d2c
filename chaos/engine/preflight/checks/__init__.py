"""Preflight checks, by subject. Every ``Check`` at the top level of a module is one; docs/doctor.md lists them."""
