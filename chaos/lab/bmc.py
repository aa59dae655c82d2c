"""A Redfish service with one ComputerSystem per node (DSP0266, ComputerSystem schema 1.20).

What power controls of all protocols switch is a :class:`PowerSwitch`, which may lie.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import msgspec
from aiohttp import web

from chaos.lab.http.messages import Handle, Handler, Request, json_response
from chaos.lab.node.logind import LogindError
from chaos.lab.node.machine import Machine
from chaos.lab.sim.lockstep import Waits

ROOT = "/redfish/v1"
RESET = "#ComputerSystem.Reset"
RESET_TYPES = ["On", "ForceOff", "ForceRestart", "GracefulShutdown", "GracefulRestart", "PowerCycle", "PushPowerButton"]


class RedfishServer:
    """Redfish service for the machines of ``switches``, by name, with one user."""

    def __init__(self, switches: Mapping[str, PowerSwitch], lockstep: Waits, user: str, password: str) -> None:
        self._switches, self._lockstep = switches, lockstep
        self._credentials = b"Basic " + base64.b64encode(f"{user}:{password}".encode())

    def app(self) -> web.Application:
        app = web.Application(middlewares=[self._guard])
        app.router.add_routes(self.routes())
        return app

    def routes(self) -> list[web.RouteDef]:
        """Handlers by path; they are called through :meth:`respond`."""
        return [
            route
            for end in ("", "/")
            for route in (
                web.get(f"{ROOT}{end}", self._root),
                web.get(f"{ROOT}/Systems{end}", self._systems),
                web.get(f"{ROOT}/Systems/{{node}}{end}", self._system),
                web.post(f"{ROOT}/Systems/{{node}}/Actions/ComputerSystem.Reset{end}", self._reset),
            )
        ]

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        return await self.respond(request, partial(handler, request))

    async def respond(self, request: Request, handle: Handle) -> web.StreamResponse:
        """Authenticate a request and handle it; errors become responses."""
        with self._lockstep.request():
            authorization = request.headers.get("Authorization", "").encode()
            if request.path.rstrip("/") != ROOT and not hmac.compare_digest(authorization, self._credentials):
                return _error(401, "Base.1.18.NoValidSession", "There is no valid session established.")
            try:
                return await handle()
            except web.HTTPNotFound:
                return _error(
                    404, "Base.1.18.ResourceMissingAtURI", f"The resource at the URI {request.path} was not found."
                )
            except web.HTTPMethodNotAllowed:
                return _error(405, "Base.1.18.OperationNotAllowed", "The HTTP method is not allowed on this resource.")

    async def _root(self, _: Request) -> web.Response:
        return json_response(
            {
                "@odata.id": ROOT,
                "@odata.type": "#ServiceRoot.v1_16_0.ServiceRoot",
                "Id": "RootService",
                "Name": "Root Service",
                "RedfishVersion": "1.18.0",
                "Systems": {"@odata.id": f"{ROOT}/Systems"},
            }
        )

    async def _systems(self, _: Request) -> web.Response:
        return json_response(
            {
                "@odata.id": f"{ROOT}/Systems",
                "@odata.type": "#ComputerSystemCollection.ComputerSystemCollection",
                "Name": "Computer System Collection",
                "Members@odata.count": len(self._switches),
                "Members": [{"@odata.id": f"{ROOT}/Systems/{name}"} for name in self._switches],
            }
        )

    async def _system(self, request: Request) -> web.Response:
        switch = self._switch(request)
        machine = switch.machine
        path = f"{ROOT}/Systems/{machine.name}"
        action = {"target": f"{path}/Actions/ComputerSystem.Reset", "ResetType@Redfish.AllowableValues": RESET_TYPES}
        on = switch.state == "on"
        return json_response(
            {
                "@odata.id": path,
                "@odata.type": "#ComputerSystem.v1_20_0.ComputerSystem",
                "Id": machine.name,
                "Name": machine.name,
                "HostName": machine.name,
                "UUID": machine.system_uuid,
                "SystemType": "Physical",
                "PowerState": "On" if on else "Off",
                "Status": {"State": "Enabled" if on else "Disabled", "Health": "OK"},
                "Actions": {RESET: action},
            }
        )

    async def _reset(self, request: Request) -> web.Response:
        switch = self._switch(request)
        try:
            body: Any = msgspec.json.decode(await request.read())
            kind = body.get("ResetType", "On")
        except (ValueError, AttributeError):
            return _error(400, "Base.1.18.MalformedJSON", "The request body was malformed JSON.")
        if kind not in RESET_TYPES:
            message = f"The value {kind!r} for the property ResetType is not in the list of acceptable values."
            return _error(400, "Base.1.18.PropertyValueNotInList", message)
        if (kind == "On") == (switch.state == "on") and kind != "PushPowerButton":
            message = f"The request cannot be performed because the system is {switch.state}."
            return _error(409, "Base.1.18.ResourceInStandby", message)
        try:
            switch.reset(kind)
        except LogindError as error:
            return _error(409, "Base.1.18.ResourceInUse", str(error))
        return web.Response(status=204)

    def _switch(self, request: Request) -> PowerSwitch:
        switch = self._switches.get(request.match_info["node"])
        if switch is None:
            raise web.HTTPNotFound
        return switch


class PowerSwitch:
    """The power switch of a machine. One that ``lies`` does nothing, and reports the state that was last asked for."""

    def __init__(self, machine: Machine, *, lies: bool = False) -> None:
        self.machine = machine
        self._lies, self._claim = lies, ""

    @property
    def state(self) -> str:
        """``on`` or ``off``, as reported."""
        return self._claim or self.machine.state

    def reset(self, kind: str) -> None:
        """Carry out ``kind``, one of RESET_TYPES. Raises LogindError where the machine refuses."""
        if not self._lies:
            _reset(self.machine, kind)
        elif kind == "PushPowerButton":
            self._claim = "on" if self.state == "off" else "off"
        else:
            self._claim = "off" if kind in ("ForceOff", "GracefulShutdown") else "on"


def power_switches(machines: Iterable[Machine], *, lie: bool) -> dict[str, PowerSwitch]:
    """The switches of a lab's machines, by name."""
    return {machine.name: PowerSwitch(machine, lies=lie) for machine in machines}


def _reset(machine: Machine, kind: str) -> None:
    if kind in ("GracefulShutdown", "PushPowerButton"):  # the same ACPI event; only a button switches on
        machine.press_power_button()
        return
    if kind in ("ForceOff", "ForceRestart", "PowerCycle"):
        machine.power_off()
    if kind in ("On", "ForceRestart", "PowerCycle"):
        machine.power_on()
    elif kind == "GracefulRestart" and machine.is_reachable:
        machine.request_shutdown("reboot")


def _error(status: int, code: str, message: str) -> web.Response:
    headers = {"WWW-Authenticate": 'Basic realm="Redfish"'} if status == 401 else {}
    response = json_response({"error": {"code": code, "message": message}}, status)
    response.headers.update(headers)
    return response
