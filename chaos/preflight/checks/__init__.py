"""ONE FILE PER CHECK; each exposes ``CHECK``. A file put here is found by itself, and docs/doctor.md lists it."""
