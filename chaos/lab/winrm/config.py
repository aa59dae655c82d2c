"""winrm/config: quotas of the service, and the document that a Get answers with."""

from __future__ import annotations

from dataclasses import dataclass

from chaos.lab.winrm.namespaces import CONFIG

_UNLIMITED = 2147483647
_SDDL = "O:NSG:BAD:P(A;;GA;;;BA)(A;;GR;;;IU)S:P(AU;FA;GA;;;WD)(AU;SA;GXGW;;;WD)"


@dataclass(slots=True)
class WinRmConfig:
    """Quotas with the defaults of Windows Server 2016 and later. ``basic``: whether the service allows Basic."""

    max_operations_per_user: int = 1500
    max_shells_per_user: int = _UNLIMITED
    max_envelope_kb: int = 500
    max_timeout_ms: int = 60_000
    idle_timeout_ms: int = 7_200_000
    basic: bool = True

    def document(self) -> str:
        """The element Config, with every value in the recorded order."""
        ports = "<cfg:DefaultPorts><cfg:HTTP>5985</cfg:HTTP><cfg:HTTPS>5986</cfg:HTTPS></cfg:DefaultPorts>"
        basic = str(self.basic).lower()
        return (
            f'<cfg:Config xmlns:cfg="{CONFIG}"><cfg:MaxEnvelopeSizekb>{self.max_envelope_kb}</cfg:MaxEnvelopeSizekb>'
            f"<cfg:MaxTimeoutms>{self.max_timeout_ms}</cfg:MaxTimeoutms><cfg:MaxBatchItems>32000</cfg:MaxBatchItems>"
            "<cfg:MaxProviderRequests>4294967295</cfg:MaxProviderRequests><cfg:Client>"
            "<cfg:NetworkDelayms>5000</cfg:NetworkDelayms><cfg:URLPrefix>wsman</cfg:URLPrefix>"
            "<cfg:AllowUnencrypted>false</cfg:AllowUnencrypted><cfg:Auth><cfg:Basic>true</cfg:Basic>"
            "<cfg:Digest>true</cfg:Digest><cfg:Kerberos>true</cfg:Kerberos><cfg:Negotiate>true</cfg:Negotiate>"
            f"<cfg:Certificate>true</cfg:Certificate><cfg:CredSSP>false</cfg:CredSSP></cfg:Auth>{ports}"
            f"<cfg:TrustedHosts></cfg:TrustedHosts></cfg:Client><cfg:Service><cfg:RootSDDL>{_SDDL}</cfg:RootSDDL>"
            "<cfg:MaxConcurrentOperations>4294967295</cfg:MaxConcurrentOperations><cfg:MaxConcurrentOperationsPerUser>"
            f"{self.max_operations_per_user}</cfg:MaxConcurrentOperationsPerUser>"
            "<cfg:EnumerationTimeoutms>240000</cfg:EnumerationTimeoutms><cfg:MaxConnections>300</cfg:MaxConnections>"
            "<cfg:MaxPacketRetrievalTimeSeconds>120</cfg:MaxPacketRetrievalTimeSeconds>"
            f"<cfg:AllowUnencrypted>false</cfg:AllowUnencrypted><cfg:Auth><cfg:Basic>{basic}</cfg:Basic>"
            "<cfg:Kerberos>true</cfg:Kerberos><cfg:Negotiate>true</cfg:Negotiate><cfg:Certificate>false"
            "</cfg:Certificate><cfg:CredSSP>false</cfg:CredSSP><cfg:CbtHardeningLevel>Relaxed</cfg:CbtHardeningLevel>"
            f"</cfg:Auth>{ports}<cfg:IPv4Filter>*</cfg:IPv4Filter><cfg:IPv6Filter>*</cfg:IPv6Filter>"
            "<cfg:EnableCompatibilityHttpListener>false</cfg:EnableCompatibilityHttpListener>"
            "<cfg:EnableCompatibilityHttpsListener>false</cfg:EnableCompatibilityHttpsListener>"
            "<cfg:CertificateThumbprint></cfg:CertificateThumbprint><cfg:AllowRemoteAccess>true</cfg:AllowRemoteAccess>"
            "</cfg:Service><cfg:Winrs><cfg:AllowRemoteShellAccess>true</cfg:AllowRemoteShellAccess>"
            f"<cfg:IdleTimeout>{self.idle_timeout_ms}</cfg:IdleTimeout>"
            f"<cfg:MaxConcurrentUsers>{_UNLIMITED}</cfg:MaxConcurrentUsers>"
            f"<cfg:MaxShellRunTime>{_UNLIMITED}</cfg:MaxShellRunTime>"
            f"<cfg:MaxProcessesPerShell>{_UNLIMITED}</cfg:MaxProcessesPerShell>"
            f"<cfg:MaxMemoryPerShellMB>{_UNLIMITED}</cfg:MaxMemoryPerShellMB>"
            f"<cfg:MaxShellsPerUser>{self.max_shells_per_user}</cfg:MaxShellsPerUser></cfg:Winrs></cfg:Config>"
        )
