"""Records and ports that every other package shares; imports nothing else of ``chaos``."""
