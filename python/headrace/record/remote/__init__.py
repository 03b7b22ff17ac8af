"""Requests to remote services: counted by hooks in the libraries that make them."""

from __future__ import annotations

from headrace.record.remote import aiohttp, fsspec, http_client, httpcore, obstore
from headrace.record.remote.imports import hook_imports

#: Hooks by the module after whose import they are put in. No request passes through two of them.
CLIENTS = {
    "http.client": http_client.hook,
    "httpcore": httpcore.hook,
    "httpcore2": httpcore.hook,
    "aiohttp": aiohttp.hook,
    "fsspec.asyn": fsspec.hook,
    "obstore": obstore.hook,
}


def count_requests() -> None:
    """Count the requests of this process from now on. Imports none of the libraries. Idempotent."""
    hook_imports(CLIENTS)
