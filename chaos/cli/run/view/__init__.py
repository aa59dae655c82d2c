"""The live view of a run on a terminal: what it shows (without rich), its frames, and the screen that they are on."""
