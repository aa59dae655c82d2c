# Registers a scheduled task from XML on standard input; schtasks.exe takes it only from a file.
# Parameters: task (name)
Register-ScheduledTask -TaskName $p.task -Xml ([Console]::In.ReadToEnd()) -Force | Out-Null
