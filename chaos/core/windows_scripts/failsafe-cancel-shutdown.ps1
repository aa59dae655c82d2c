# Failsafe task: aborts the pending shutdown if it was requested with this comment, never one of somebody else.
# Exits with 0 if there is none: the newest event that matters is an abort (1075) or a start of Windows (12). Another
# exit code of wevtutil.exe is its own: the log could not be read.
# Parameters: arguments (of wevtutil.exe: a query of requests, aborts and starts, the newest first), comment
foreach ($line in (& 'C:\Windows\System32\wevtutil.exe' $p.arguments)) {
    if ($line.Contains('>1075</EventID>') -or $line.Contains('>12</EventID>')) { exit 0 }
    if ($line.Contains(">$($p.comment)<")) {
        & 'C:\Windows\System32\shutdown.exe' /a
        exit $LASTEXITCODE
    }
}
exit $LASTEXITCODE
