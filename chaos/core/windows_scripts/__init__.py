"""The PowerShell scripts that nodefall runs on Windows hosts: one file each, with a comment that says what it does."""
