"""Facts of Windows hosts: one file per fact; one that Linux hosts have too has the same name and kind of value."""
