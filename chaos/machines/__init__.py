"""Machines over SSH, WinRM, containers and pods: sessions, power controls, the observer of hosts."""
