"""``import headrace`` is light, leaves nothing behind, and says what the package is."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import headrace as hr


def test_imports_neither_torch_nor_numpy(execute: Callable[..., Any]) -> None:
    result = execute(
        """
        import json, sys
        import headrace
        import headrace.show.cli
        import headrace.export
        import headrace.show.notebook
        heavy = ("torch", "numpy", "PIL", "pandas", "multiprocessing", "asyncio")
        heavy += ("mcp", "textual", "starlette", "prometheus_client", "opentelemetry", "mlflow")
        heavy += ("tensorboard", "wandb", "lightning", "transformers", "accelerate", "keras", "ray")
        heavy += ("IPython",)
        print(json.dumps([name for name in sys.modules if name.split(".")[0] in heavy]))
        """
    )
    assert result.json == []
    assert result.err == ""


def test_wrapping_imports_neither(execute: Callable[..., Any]) -> None:
    result = execute(
        """
        import json, sys
        import headrace as hr
        loader = hr.wrap([1, 2])
        list(loader)
        str(loader.report())
        print(json.dumps([name for name in ("torch", "numpy") if name in sys.modules]))
        """
    )
    assert result.json == []


def test_import_alone_starts_and_writes_nothing(execute: Callable[..., Any], tmp_path: Path) -> None:
    result = execute(
        """
        import glob, json, os
        import headrace
        threads = os.listdir("/proc/self/task")
        print(json.dumps([len(threads), glob.glob(f"/dev/shm/headrace-*/{os.getpid()}-*")]))
        """
    )
    assert result.json == [1, []]
    assert [path.name for path in tmp_path.iterdir()] == ["program_0.py"]


def test_everything_public_is_there() -> None:
    for name in hr.__all__:
        assert getattr(hr, name) is not None
    assert len(hr.__all__) == len(set(hr.__all__))
    assert hr.__doc__


def test_the_stub_names_what_the_native_module_has() -> None:
    import ast

    import headrace._core as core

    folder = Path(str(hr.__file__)).parent
    assert (folder / "py.typed").exists()
    tree = ast.parse((folder / "_core.pyi").read_text(encoding="utf-8"))
    stub: dict[str, set[str]] = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            stub[node.name] = {one.name for one in node.body if isinstance(one, ast.FunctionDef)}
        elif isinstance(node, ast.FunctionDef):
            stub[node.name] = set()
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            stub[node.target.id] = set()
    ours = {name for name in vars(core) if not name.startswith("__")} | {"__version__"}
    assert ours == stub.keys()
    for name, methods in stub.items():
        # Python 3.12 was the first to show the buffer protocol as a method.
        shown = methods if sys.version_info >= (3, 12) else methods - {"__buffer__"}
        assert [method for method in shown if not hasattr(getattr(core, name), method)] in (
            [],
            ["__getattr__"],
        )
        public = (
            {
                method
                for method in vars(
                    getattr(core, name),
                )
                if not method.startswith("_")
            }
            if methods
            else set()
        )
        assert public <= methods
