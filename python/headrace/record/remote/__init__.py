"""Requests to remote services: counted by hooks in the libraries that make them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from headrace.common.handlers import let_through
from headrace.common.messages import warn_once
from headrace.common.plain import typed_error_line
from headrace.record.remote import aiohttp, http_client, httpcore, obstore

Hook = Callable[[ModuleType], None]


def hook_imports(hooks: Mapping[str, Hook]) -> None:
    """Call each hook with its module, now or after its import. A second call does nothing."""
    if any(isinstance(finder, _HookedModules) for finder in sys.meta_path):
        return
    waiting = _HookedModules(hooks)
    sys.meta_path.insert(0, waiting)
    for name in hooks:
        module = sys.modules.get(name)
        # A module that is being imported now has its names later: it is hooked where it was found again.
        if module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False):
            waiting.call(name, module)


class _HookedModules:
    """A finder that finds nothing itself: the loader that another finds calls the hook after the import."""

    def __init__(self, hooks: Mapping[str, Hook]) -> None:
        self._waiting = dict(hooks)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in self._waiting:
            return None
        for finder in list(sys.meta_path):
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find is not None else None
            if spec is not None:
                self._call_after(name, spec.loader)
                return spec
        return None

    def _call_after(self, name: str, loader: Any) -> None:
        """The loader's own method stays what it is for everybody who asks after the import."""
        execute = getattr(loader, "exec_module", None)
        if execute is None or not hasattr(loader, "__dict__"):
            return

        def exec_module(module: ModuleType) -> None:
            vars(loader).pop("exec_module", None)
            execute(module)
            self.call(name, module)

        try:
            loader.exec_module = exec_module
        except AttributeError:
            return

    def call(self, name: str, module: ModuleType) -> None:
        hook = self._waiting.pop(name, None)
        if hook is None:
            return
        try:
            hook(module)
        except Exception as error:  # the program's import succeeds
            let_through(error)
            warn_once(f"requests of {name} are not counted ({typed_error_line(error)})")


#: Hooks by the module after whose import they are put in. No request passes through two of them.
CLIENTS = {
    "http.client": http_client.hook,
    "httpcore": httpcore.hook,
    "httpcore2": httpcore.hook,
    "aiohttp": aiohttp.hook,
    "fsspec.asyn": aiohttp.hook_fsspec,
    "obstore": obstore.hook,
}


def count_requests() -> None:
    """Count the requests of this process from now on. Imports none of the libraries. Idempotent."""
    hook_imports(CLIENTS)
