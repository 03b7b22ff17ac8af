"""The Model Context Protocol, spoken on stdin and stdout with its official SDK."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from headrace._core import __version__
from headrace.common.plain import error_line
from headrace.errors import Error, UsageError
from headrace.show.mcp.tools import Tools

_INSTRUCTIONS = (
    "Headrace records the input pipelines of training loops and names what limits them. Call list_runs, then "
    "report on a run: its verdict says whether the loop is held up by its input, by which operator and why, "
    "and its advice says what to change. Check a change of your own with what_if before you propose it. "
    "Everything is read-only; times are in seconds."
)


def make_server(tools: Tools) -> Any:
    """The SDK's server with the tools. Raises UsageError without the SDK."""
    server, reads, ToolError = _new_server()  # noqa: N806

    def answering(tool: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
        @functools.wraps(tool)
        def answer(*args: Any, **kwargs: Any) -> dict[str, Any]:
            try:
                return tool(*args, **kwargs)
            except (Error, OSError) as error:
                raise ToolError(error_line(error)) from None

        return answer

    for tool in (tools.list_runs, tools.report, tools.what_if, tools.compare, tools.trace_tables):
        server.add_tool(answering(tool), annotations=reads, structured_output=True)
    return server


def _new_server() -> tuple[Any, Any, Any]:
    """A server, the annotations of its tools, and the exception whose text an assistant reads."""
    try:
        from mcp.types import ToolAnnotations
    except ImportError:
        raise UsageError(
            "headrace mcp needs the SDK of the Model Context Protocol: pip install 'headrace[mcp]'"
        ) from None
    try:
        from mcp.server.mcpserver import MCPServer
        from mcp.server.mcpserver.exceptions import ToolError
    except ImportError:  # version 1 of the SDK
        from mcp.server.fastmcp import FastMCP
        from mcp.server.fastmcp.exceptions import ToolError

        server = FastMCP("headrace", instructions=_INSTRUCTIONS, log_level="WARNING")
        return server, ToolAnnotations(readOnlyHint=True, idempotentHint=True, openWorldHint=False), ToolError
    server = MCPServer("headrace", instructions=_INSTRUCTIONS, version=__version__, log_level="WARNING")
    reads = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
    return server, reads, ToolError
