"""What many runs show together: how measured durations change over runs, and the distribution of a series. Pure."""
