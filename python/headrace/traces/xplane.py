"""Folders of JAX's and TensorFlow's profiler: ``plugins/profile/RUN/HOST.xplane.pb``, and JSON beside it."""

from __future__ import annotations

from pathlib import Path

ENDINGS = (".xplane.pb", ".xplane.pb.gz")
_JSON = ".trace.json.gz"
_RUNS = Path("plugins", "profile")


def last_run(folder: Path) -> tuple[Path, str]:
    """The folder of the last run in one that the profiler was given, and a note if there are others."""
    runs = sorted(path for path in folder.glob(str(_RUNS / "*")) if any(path.glob("*.xplane.pb*")))
    if not runs:
        return folder, ""
    if len(runs) == 1:
        return runs[0], ""
    return runs[-1], (
        f"{folder} was profiled {len(runs)} times: the last one is read, {runs[-1].name}; "
        "name another folder for another one"
    )


def without_json(paths: list[str]) -> list[str]:
    """Paths without the JSON of hosts that have their profile: it is cut at a million events."""
    hosts = {path.removesuffix(".gz").removesuffix(ENDINGS[0]) for path in paths if path.endswith(ENDINGS)}
    return [path for path in paths if not (path.endswith(_JSON) and path.removesuffix(_JSON) in hosts)]
