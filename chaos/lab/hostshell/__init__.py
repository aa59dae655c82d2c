"""sshd and a shell for simulated hosts."""
