"""A lab of a recorded cluster: its first lists, what was done to it, and what follows in a simulated future."""
