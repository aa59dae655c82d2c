"""One file per thing to know of a host: the command that reads it and the parser of its output."""
