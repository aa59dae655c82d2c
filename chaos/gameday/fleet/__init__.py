"""A game day on many clusters at once, as a Job in each; pure."""
