"""Game days: the document, its calendar, and the state of a day. Pure."""
