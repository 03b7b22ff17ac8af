"""Which functions that a loop calls make the batches: those whose results others take, and that take none."""

from __future__ import annotations

import ast
import builtins
import functools
import linecache
import re
import sys
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

from headrace.loaders.kit.names import is_the_users

_Scope = list[ast.stmt]
#: Names of functions that make batches.
_SAYS_SO = re.compile(
    r"_*(get|next|make|load|fetch|read|sample|draw|build|generate|prepare)\w*(batch|data|example|sample)"
)


def makes_batches(
    caller: CodeType, name: str, namespace: dict[str, Any], takers: set[str] | None = None
) -> bool | None:
    """Whether the function ``name`` that ``caller`` calls makes what the rest of the loop takes.

    None of its arguments is the result of another function of the user's in the same loop, and its result is
    used there, or its name says that it makes batches. namespace: the caller's globals. takers: functions of
    the user's, one of which must take its result; None: any use counts. Returns None if the source cannot be
    read.
    """
    body = _body_of(caller)
    if body is None:
        return None
    scope = _innermost_loop(body, name)
    if scope is None:
        return False
    results: set[str] = set()
    of_others: set[str] = set()  # results of the user's other functions
    arguments: set[str] = set()
    loaded: set[str] = set()
    passed: set[str] = set()  # to a taker
    is_passed = False
    for node in _walk(scope):
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = {each for target in targets for each in _stored(target)}
            calls = [one for one in ast.walk(node.value) if isinstance(one, ast.Call)]
            if any(_name_of(call) == name for call in calls):
                results |= names
            elif any(not _is_of_a_library(call.func, namespace) for call in calls):
                of_others |= names
        elif isinstance(node, ast.Call):
            inside = [one for argument in _arguments(node) for one in ast.walk(argument)]
            if _name_of(node) == name:
                arguments |= {text for one in inside if (text := _text_of(one))}
            elif takers is None or _name_of(node) in takers or _is_the_users_own(node.func, namespace):
                passed |= {text for one in inside if (text := _text_of(one))}
                is_passed |= any(isinstance(one, ast.Call) and _name_of(one) == name for one in inside)
        if isinstance(getattr(node, "ctx", None), ast.Load) and (text := _text_of(node)):
            loaded.add(text)
    is_used = is_passed or bool(results & (passed if takers is not None else loaded))
    return (is_used or _SAYS_SO.match(name) is not None) and not arguments & (of_others - results)


def is_called_in_a_loop(caller: CodeType, name: str) -> bool:
    """Whether a loop of ``caller`` calls the function ``name``."""
    body = _body_of(caller)
    return body is not None and _innermost_loop(body, name) not in (None, body)


def _name_of(call: ast.Call) -> str:
    """``f`` of ``f()`` and of ``x.f()``."""
    if isinstance(call.func, ast.Name):
        return call.func.id
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _arguments(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def _text_of(node: ast.AST) -> str:
    """A variable, or an attribute of one: ``batch``, ``self.batch``."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    return ""


def _stored(target: ast.expr) -> Iterator[str]:
    if isinstance(target, (ast.Tuple, ast.List)):
        for each in target.elts:
            yield from _stored(each)
    elif isinstance(target, ast.Starred):
        yield from _stored(target.value)
    elif text := _text_of(target):
        yield text


def _named(function: ast.expr, namespace: dict[str, Any]) -> Any:
    """What a name, or a path through modules, stands for; None if that is unknown."""
    path: list[str] = []
    while isinstance(function, ast.Attribute):
        path.insert(0, function.attr)
        function = function.value
    if not isinstance(function, ast.Name):
        return None
    found = namespace.get(function.id, getattr(builtins, function.id, None))
    for attribute in path:
        if not isinstance(found, ModuleType):
            return None
        found = getattr(found, attribute, None)
    return found


def _is_of_a_library(function: ast.expr, namespace: dict[str, Any]) -> bool:
    """Whether it is known to be a builtin or a library's: ``len``, ``np.stack``, ``jax.random.split``."""
    found = _named(function, namespace)
    return found is not None and not _is_of_the_user(found)


def _is_the_users_own(function: ast.expr, namespace: dict[str, Any]) -> bool:
    found = _named(function, namespace)
    return found is not None and _is_of_the_user(found)


def _is_of_the_user(found: Any) -> bool:
    """A function or class of the user's, or an instance of one."""
    if isinstance(found, FunctionType):
        return is_the_users(found.__code__.co_filename)
    kind = found if isinstance(found, type) else type(found)
    module = sys.modules.get(str(getattr(kind, "__module__", "")))
    return is_the_users(getattr(module, "__file__", None) or "<frozen>")


def _walk(scope: _Scope) -> Iterator[ast.AST]:
    """The nodes of a scope, without the functions and classes that are defined in it."""
    waiting: list[ast.AST] = list(scope)
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            continue
        waiting.extend(ast.iter_child_nodes(node))


def _innermost_loop(body: _Scope, name: str) -> _Scope | None:
    """The body of the innermost loop that calls ``name``; ``body`` if no loop does, None if nothing does."""
    calls = any(isinstance(node, ast.Call) and _name_of(node) == name for node in _walk(body))
    if not calls:
        return None
    for node in _walk(body):
        if isinstance(node, (ast.For, ast.While)):
            inner = _innermost_loop(node.body, name)
            if inner is not None:
                return inner
    return body


@functools.lru_cache(maxsize=64)
def _body_of(code: CodeType) -> _Scope | None:
    lines = linecache.getlines(code.co_filename)
    try:
        tree = ast.parse("".join(lines)) if lines else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if tree is None:
        return None
    if code.co_name == "<module>":
        return tree.body
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == code.co_name:
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            if first == code.co_firstlineno:
                return node.body
    return None
