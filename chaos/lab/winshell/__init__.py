"""What runs commands on a simulated Windows machine: cmd.exe, PowerShell, programs."""
