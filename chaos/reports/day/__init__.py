"""The report of a game day, over all its entries and clusters: one file per format; pure."""
