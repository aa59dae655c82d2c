"""What a run, a game day, a comparison or many runs look like to people and programs."""
