"""Actions: one file each, named like the action, or with others of its family; files with an underscore are shared."""

# Names of the actions in each file that has not exactly the one it is named like: found without an import.
FAMILIES = {
    "bus": ("dbus-restart", "logind-restart"),
    "cordon": ("cordon", "drain", "uncordon"),
    "netem": ("bandwidth", "latency", "packet-corrupt", "packet-duplicate", "packet-loss"),
    "node_objects": ("create-node", "delete-node"),
    "pods": ("delete-pod", "evict-pod", "force-delete-pod", "mark-disruption", "remove-finalizers"),
    "power": ("power-button", "power-cut", "poweroff"),
    "pressure": ("disk-pressure", "memory-pressure", "pid-pressure"),
    "reboot": ("hard-reboot", "kernel-crash", "reboot"),
    "shutdown": ("cancel-shutdown", "cancel-shutdown-in-flight", "schedule-shutdown"),
    "taints": ("out-of-service", "taint", "untaint"),
    "units": ("kubelet-freeze", "kubelet-restart", "kubelet-start", "kubelet-stop", "runtime-stop"),
    "workloads": ("patch-budget", "rollout-restart", "scale"),
}
