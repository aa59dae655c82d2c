"""Machines over SSH, WinRM, containers and pods: sessions, power controls, the observer of hosts."""

from chaos.core.installed_drivers import install
from chaos.machines import power, transports

install(transports, power)
