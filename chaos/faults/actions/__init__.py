"""One file per action: commands out, nothing sent."""
