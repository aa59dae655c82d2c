"""Questions about a recording, and how they are answered over time."""
