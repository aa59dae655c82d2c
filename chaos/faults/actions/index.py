"""Names of what the modules of actions declare: so each is imported only when it is used.

Written by tools/action_pages.py.
"""

# Actions by module.
ACTIONS: dict[str, tuple[str, ...]] = {
    "bus": ("dbus-restart", "logind-restart"),
    "certificate_expired": ("certificate-expired",),
    "clock_skew": ("clock-skew",),
    "command": ("command",),
    "cordon": ("cordon", "drain", "uncordon"),
    "cpu_stress": ("cpu-stress",),
    "delete_workload": ("delete-workload",),
    "disk_read_only": ("disk-read-only",),
    "disk_slow": ("disk-slow",),
    "dns_failure": ("dns-failure",),
    "etcd_leader_kill": ("etcd-leader-kill",),
    "kubelet_slow": ("kubelet-slow",),
    "mtu": ("mtu",),
    "netem": ("bandwidth", "latency", "packet-corrupt", "packet-duplicate", "packet-loss"),
    "network_unavailable": ("network-unavailable",),
    "node_objects": ("create-node", "delete-node"),
    "partition": ("partition",),
    "pods": ("delete-pod", "evict-pod", "force-delete-pod", "mark-disruption", "remove-finalizers"),
    "power": ("power-button", "power-cut", "poweroff"),
    "power_on": ("power-on",),
    "preempt": ("preempt",),
    "prepare_for_shutdown": ("prepare-for-shutdown",),
    "pressure": ("disk-pressure", "memory-pressure", "pid-pressure"),
    "reboot": ("hard-reboot", "kernel-crash", "reboot"),
    "shutdown": ("cancel-shutdown", "cancel-shutdown-in-flight", "schedule-shutdown"),
    "swap_off": ("swap-off",),
    "taints": ("out-of-service", "taint", "untaint"),
    "units": ("kubelet-freeze", "kubelet-restart", "kubelet-start", "kubelet-stop", "runtime-stop"),
    "workloads": ("patch-budget", "rollout-restart", "scale"),
}
# Windows forms of actions by module.
WINDOWS_ACTIONS: dict[str, tuple[str, ...]] = {
    "clock_skew": ("clock-skew",),
    "machine": ("hard-reboot", "kernel-crash", "power-cut"),
    "partition": ("partition",),
    "services": ("kubelet-restart", "kubelet-start", "kubelet-stop", "runtime-stop"),
    "shutdown": ("cancel-shutdown", "poweroff", "reboot", "schedule-shutdown"),
}
# Facts of hosts that an action declares for itself, by module.
FACTS: dict[str, tuple[str, ...]] = {
    "swap_off": ("swap-area", "swap-areas"),
}
