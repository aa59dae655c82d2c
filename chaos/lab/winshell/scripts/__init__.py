"""Handlers of the PowerShell scripts that are sent to Windows machines, by name.

A test compares the digests with the scripts: whoever changes a script changes its handler, and then its digest here.
"""

from __future__ import annotations

from chaos.lab.winshell.scripts import clock, readings, services, tasks
from chaos.lab.winshell.scripts.script import Script

SCRIPTS = {
    "failsafe-cancel-shutdown": Script("5b559d05a2cb", tasks.failsafe_cancel_shutdown),
    "failsafe-delete-rules": Script("deeb7435d11c", tasks.failsafe_delete_rules),
    "failsafe-run": Script("463681549e40", tasks.failsafe_run),
    "failsafe-start-service": Script("6076c1161c0f", services.failsafe_start_service),
    "list-addresses": Script("fea708c42a12", readings.list_addresses),
    "list-peers": Script("544e728f1f9c", readings.list_peers),
    "probe-endpoints": Script("d43a0b5ed246", readings.probe_endpoints),
    "read-certificates": Script("f98872c3d81e", readings.read_certificates),
    "read-clock": Script("a23110b33d86", clock.read_clock),
    "read-connection": Script("432681545b92", readings.read_connection),
    "read-firewall": Script("db1822df99d4", readings.read_firewall),
    "read-pending-reboot": Script("a0e4391a57da", readings.read_pending_reboot),
    "read-server": Script("121a35838742", readings.read_server),
    "read-time": Script("2836e366ca45", readings.read_time),
    "register-task": Script("4e82dbdccf08", tasks.register_task),
    "resolve-name": Script("7f8e8b51b942", readings.resolve_name),
    "restart-service": Script("bd550d5e30d8", services.restart_service),
    "restore-clock": Script("71d76604a652", clock.restore_clock),
    "set-clock": Script("1251b942876b", clock.set_clock),
    "start-service": Script("de0d0be49e42", services.start_service),
    "stop-services": Script("2c8a5856b2de", services.stop_services),
}
