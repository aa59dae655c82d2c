"""Records and ports that all rooms share, the clock, and what a run stores."""
