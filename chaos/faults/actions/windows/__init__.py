"""Windows forms of actions, by family; a form has the name of its action."""

# Names of the actions in each file that has not exactly the one it is named like: found without an import.
FAMILIES = {
    "machine": ("hard-reboot", "kernel-crash", "power-cut"),
    "services": ("kubelet-restart", "kubelet-start", "kubelet-stop", "runtime-stop"),
    "shutdown": ("cancel-shutdown", "poweroff", "reboot", "schedule-shutdown"),
}
