"""The simulation refereed by recordings of real clusters: build the recorded cluster, do what was done, compare."""
