"""Sessions by the ssh program of this machine, with its user's configuration."""
