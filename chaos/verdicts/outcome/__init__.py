"""What a fault did to a cluster, as named measures; their bands over many outcomes, and predictions."""
