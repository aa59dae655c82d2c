"""``nodefall doctor`` and its output."""
