"""The official SDK over our tools, resources and prompts. Imported when the first HTTP client comes, and not before."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from uuid import uuid4

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from starlette.types import Receive, Scope, Send

from kektor.engine.gateway import Principal
from kektor.errors import KektorError
from kektor.memory.reading import DEFAULT_INDEX
from kektor_server.mcp import protocol
from kektor_server.mcp.answer import Stopped, fail, run_tool
from kektor_server.mcp.door import Changes
from kektor_server.mcp.generate import catalogue
from kektor_server.mcp.profiles import REGISTRY
from kektor_server.mcp.registry import ToolCall
from kektor_server.mcp.resources import read_resource, stamp
from kektor_server.rest.service import Service

__all__ = ["SdkServer"]

_SETTLE = 0.1
_LOOK = 0.25
_TOLD_WITHIN = 5.0

Context = Any


class SdkServer:
    """A server for each profile, all without sessions: a client goes on after a restart as if nothing had been."""

    def __init__(self, service: Service, changes: Changes, stopping: Callable[[], bool]) -> None:
        self._service = service
        self._changes = changes
        self._stopping = stopping
        self._managers = {profile: self._manager(profile) for profile in REGISTRY.profiles}
        self._end = asyncio.Event()
        self._running: list[asyncio.Task[None]] = []

    async def open(self) -> None:
        """Take requests from now on."""
        for manager in self._managers.values():
            begun = asyncio.Event()
            self._running.append(asyncio.create_task(self._run(manager, begun)))
            await begun.wait()

    async def close(self) -> None:
        """End everything that is open."""
        self._end.set()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def handle(self, profile: str, scope: Scope, receive: Receive, send: Send) -> None:
        """One request of a client."""
        await self._managers[profile].handle_request(scope, receive, send)

    async def _run(self, manager: StreamableHTTPSessionManager, begun: asyncio.Event) -> None:
        async with manager.run():
            begun.set()
            await self._end.wait()

    def _manager(self, profile: str) -> StreamableHTTPSessionManager:
        body = self._service.settings.body_bytes
        return StreamableHTTPSessionManager(_Profile(self, profile).server, stateless=True, max_request_body_size=body)

    async def run_tool(self, name: str, profile: str, arguments: dict[str, Any], context: Context) -> dict[str, Any]:
        """A tool in a thread, told when its client has gone."""
        principal, cancelled, loop = _principal(context), threading.Event(), asyncio.get_running_loop()

        def progress(done: int, total: int, what: str) -> None:
            told = asyncio.run_coroutine_threadsafe(context.session.report_progress(done, total, what), loop)
            with suppress(TimeoutError):
                told.result(_TOLD_WITHIN)

        call = ToolCall(
            self._service.operations, principal, _index(principal), f"mcp-{uuid4().hex}", arguments, progress,
            cancelled.is_set,
        )  # fmt: skip
        reads = name in REGISTRY.tools and REGISTRY.tools[name].reads
        lane = self._service.reads if reads else self._service.writes
        try:
            return await lane.run(lambda: run_tool(name, profile, call))
        except KektorError as error:  # no room in the lane
            return fail(error)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        except Stopped:
            return {"content": []}

    async def read(self, uri: str, context: Context) -> dict[str, Any]:
        """A resource; an MCPError for one that is not there."""
        principal = _principal(context)
        try:
            return await self._service.reads.run(lambda: read_resource(self._service.operations, principal, uri))
        except KektorError as error:
            told = protocol.error_of(error.as_dict(), protocol.Envelope(None)) or protocol.ProtocolError(-32603, "")
            raise MCPError(told.error["code"], told.error["message"], told.error.get("data")) from error

    async def listen(self, uris: list[str], context: Context) -> None:
        """Tell of changes of some resources until the client goes or the server ends."""
        principal, meta = _principal(context), {protocol.SUBSCRIPTION_ID: context.request_id}
        with self._changes.heard() as written:
            seen = {uri: await self._stamp(uri, principal) for uri in uris}
            honoured = types.SubscriptionFilter(resource_subscriptions=uris or None)
            await context.session.send_notification(
                types.SubscriptionsAcknowledgedNotification(
                    params=types.SubscriptionsAcknowledgedNotificationParams(notifications=honoured, _meta=meta)
                ),
                related_request_id=context.request_id,
            )
            while not self._ending():
                with suppress(TimeoutError):
                    await asyncio.wait_for(written.wait(), _LOOK)
                self._service.authenticate(context.request.scope["kektor.headers"])  # it may have been revoked since
                if not written.is_set():
                    continue
                await asyncio.sleep(_SETTLE)
                written.clear()
                for uri, before in seen.items():
                    if (now := await self._stamp(uri, principal)) != before:
                        seen[uri] = now
                        await context.session.send_notification(
                            types.ResourceUpdatedNotification(
                                params=types.ResourceUpdatedNotificationParams(uri=uri, _meta=meta)
                            ),
                            related_request_id=context.request_id,
                        )

    def _ending(self) -> bool:
        return self._end.is_set() or self._stopping()

    async def _stamp(self, uri: str, principal: Principal) -> str:
        return await self._service.reads.run(lambda: stamp(self._service.operations, principal, uri))


class _Profile:
    """The handlers of one profile."""

    def __init__(self, owner: SdkServer, profile: str) -> None:
        everything = catalogue()
        self._owner = owner
        self._profile = profile
        self._texts = protocol.Catalogue(profile)
        by_name = {tool["name"]: tool for tool in everything["tools"]}
        self._tools = [types.Tool.model_validate(by_name[name]) for name in REGISTRY.profiles[profile]]
        self._resources = [types.Resource.model_validate(each) for each in everything["resources"]]
        self._templates = [types.ResourceTemplate.model_validate(each) for each in everything["resourceTemplates"]]
        self._prompts = [types.Prompt.model_validate(_without_text(each)) for each in everything["prompts"]]
        self.server: Server[Any] = Server(
            everything["server"]["name"],
            title=everything["server"]["title"],
            version=everything["server"]["version"],
            instructions=everything["instructions"],
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
            on_subscriptions_listen=self._listen,
        )

    async def _list_tools(self, _: Context, __: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=self._tools)

    async def _call_tool(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name not in REGISTRY.profiles[self._profile]:
            raise MCPError(protocol.INVALID_PARAMS, f"there is no tool {params.name!r}")
        result = await self._owner.run_tool(params.name, self._profile, params.arguments or {}, context)
        return types.CallToolResult.model_validate(result)

    async def _list_resources(self, _: Context, __: Any) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=self._resources)

    async def _list_templates(self, _: Context, __: Any) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=self._templates)

    async def _read_resource(self, context: Context, params: types.ReadResourceRequestParams) -> Any:
        return types.ReadResourceResult.model_validate(await self._owner.read(str(params.uri), context))

    async def _list_prompts(self, _: Context, __: Any) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=self._prompts)

    async def _get_prompt(self, _: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        asked = {"name": params.name, "arguments": dict(params.arguments or {})}
        try:
            return types.GetPromptResult.model_validate(self._texts.answer("prompts/get", asked, None))
        except protocol.ProtocolError as error:
            raise MCPError(error.error["code"], error.error["message"]) from error

    async def _listen(self, context: Context, params: types.SubscriptionsListenRequestParams) -> Any:
        await self._owner.listen(list(params.notifications.resource_subscriptions or ()), context)
        return types.SubscriptionsListenResult(_meta={protocol.SUBSCRIPTION_ID: context.request_id})


def _principal(context: Context) -> Principal:
    """Whom the request at hand was found to be from: each brings its own credential, whatever came before it."""
    principal: Principal = context.request.scope["kektor.principal"]
    return principal


def _index(principal: Principal) -> str:
    """Where a call goes that names no index: the only one of the caller's, or the usual one."""
    named = {grant.index for grant in principal.grants}
    only = next(iter(named)) if len(named) == 1 else None
    return only or DEFAULT_INDEX


def _without_text(prompt: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in prompt.items() if name not in ("text", "tail")}
