"""Facts of Windows hosts, by subject; one that Linux hosts have too has the same name and kind of value."""
