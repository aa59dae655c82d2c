"""``nodefall lab``."""
