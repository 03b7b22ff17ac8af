"""Requests to remote services: counted by hooks in the libraries that make them.

calls        one request: whose it is, whether it repeats a refused one
http_client  http.client, below urllib, urllib3, requests, botocore, google-cloud-storage
httpcore     below httpx and huggingface_hub, sync and async
aiohttp      below fsspec's http, s3fs, gcsfs
fsspec       charges requests of fsspec's event loop to the thread that waits for them
obstore      clients in Rust, by their calls
imports      hooks what is imported now, and what is imported later
"""

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
