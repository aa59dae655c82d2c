# Prints "profile NAME ENABLED LOCAL-RULES" for each profile of the firewall, and "network PROFILE" for each network.
# The active store is what acts: it includes the policy of a group. netsh.exe would print translated words.
Get-NetFirewallProfile -PolicyStore ActiveStore |
    ForEach-Object { "profile $($_.Name) $($_.Enabled) $($_.AllowLocalFirewallRules)" }
Get-NetConnectionProfile -ErrorAction SilentlyContinue | ForEach-Object { "network $($_.NetworkCategory)" }
exit 0
