"""Which folders the trials of ``headrace tune`` must not change."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from headrace.run.mounts import Layers, MountPoint, mount_points

#: Top-level folders with programs, sockets and temporary files, where scripts leave no results.
_SYSTEM = {
    "bin",
    "boot",
    "dev",
    "etc",
    "lib",
    "lib32",
    "lib64",
    "libx32",
    "lost+found",
    "proc",
    "run",
    "sbin",
}
_SYSTEM |= {"snap", "sys", "tmp", "usr", "var"}
#: Not files: nothing that is written there is kept.
_KERNEL = ("/dev", "/proc", "/sys", "/run")
_NO_FILES = {"autofs", "bpf", "cgroup", "cgroup2", "debugfs", "devpts", "devtmpfs", "mqueue", "proc", "sysfs"}


def trial_layers(folder: str, arguments: Sequence[str]) -> Layers:
    """What a trial in ``folder`` with these arguments may write to by accident.

    Required: the folder, the folders to which links in it lead, those that arguments name. Optional: every
    other folder outside of the system's. Caches are kept: a download or a compiled kernel serves all trials.
    """
    folder = os.path.realpath(folder)
    mounts = mount_points()
    roots = _roots(mounts)
    kept = [each for each in _caches() if each != folder and not is_inside(folder, each)]
    required = {folder}
    for place in (*_linked_folders(folder), *_named_folders(folder, arguments)):
        if is_inside(place, *required):
            continue
        cached = [each for each in kept if is_inside(place, each)]
        kept = [each for each in kept if each not in cached]
        # One mount for many links into it.
        root = next((each for each in roots if is_inside(place, each)), place)
        required.add(root)
    required |= {each.path for each in mounts if is_inside(each.path, *required) and _has_files(each)}
    kept += [each.path for each in mounts if is_inside(each.path, *required) and not _has_files(each)]
    return Layers(sorted(required), [each for each in roots if each not in required], kept)


def scratch_parent(layers: Layers) -> str | None:
    """A folder for temporary files outside of ``layers``; None if there is none."""
    for place in (tempfile.gettempdir(), "/var/tmp", "/dev/shm"):
        if os.access(place, os.W_OK) and not is_inside(os.path.realpath(place), *layers.required):
            return place
    return None


def writable_folders(layers: Layers) -> list[str]:
    """Where a trial without mounts may write besides: temporary files, devices, settings and caches."""
    home = os.path.expanduser("~")
    hidden = [each for each in _folders_in(home) if os.path.basename(each).startswith(".")]
    found = ["/dev", "/proc", "/run", "/tmp", "/var/tmp", tempfile.gettempdir(), *_caches(), *hidden]
    return [each for each in found if not any(is_inside(place, each) for place in layers.required)]


def is_inside(path: str, *folders: str) -> bool:
    """True for a folder itself, too."""
    return any(path == each or path.startswith(each.rstrip("/") + "/") for each in folders)


# --- links ---


def links_in(folder: str) -> Iterator[str]:
    """Symbolic links in ``folder`` and below, without following them."""
    todo = [folder]
    while todo:
        with suppress(OSError), os.scandir(todo.pop()) as entries:  # unreadable, or gone meanwhile
            for entry in entries:
                if entry.is_symlink():
                    yield entry.path
                elif entry.is_dir(follow_symlinks=False) and not leads_to_kernel(entry.path):
                    todo.append(entry.path)


def link_target(link: str) -> str | None:
    """The path at the end of ``link`` and of links behind it; None if the link is gone."""
    try:
        return os.path.realpath(link)
    except OSError:
        return None


def leads_to_kernel(path: str) -> bool:
    """True for devices and the like, which are no files."""
    return is_inside(path, *_KERNEL) and not is_inside(path, "/dev/shm")


def _linked_folders(folder: str) -> Iterator[str]:
    """Folders outside of ``folder`` that are reached through links in it, also through links in those."""
    seen, todo = [folder], [folder]
    while todo:
        for link in links_in(todo.pop()):
            target = link_target(link)
            if target is None or leads_to_kernel(target) or is_inside(target, *seen):
                continue
            if os.path.isdir(target):
                seen.append(target)
                todo.append(target)
                yield target
            elif not os.path.exists(target) or os.access(target, os.W_OK):
                yield _existing_parent(target)


def _named_folders(folder: str, arguments: Iterable[str]) -> Iterator[str]:
    for argument in arguments:
        name = argument.partition("=")[2] or argument
        place = _existing_parent(os.path.realpath(os.path.join(folder, os.path.expanduser(name))))
        if not leads_to_kernel(place) and not is_inside(tempfile.gettempdir(), place):
            yield place


def _existing_parent(path: str) -> str:
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    return path


# --- the rest of the file system ---


def _roots(mounts: Sequence[MountPoint]) -> list[str]:
    """The folders that cover everything but the system's, without a mount or the temporary files within."""
    temporary = os.path.realpath(tempfile.gettempdir())
    stay = {each.path for each in mounts} | {temporary}
    without_files = {each.path for each in mounts if not _has_files(each)} | {temporary}
    found = []
    todo = [each for each in _folders_in("/") if os.path.basename(each) not in _SYSTEM]
    while todo:
        folder = todo.pop()
        if folder in without_files:
            continue
        if any(each != folder and is_inside(each, folder) for each in stay):
            todo += _folders_in(folder)
        else:
            found.append(folder)
    return sorted(found)


def _folders_in(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [each.path for each in entries if each.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _has_files(mount: MountPoint) -> bool:
    return mount.type not in _NO_FILES and not leads_to_kernel(mount.path) and os.path.isdir(mount.path)


def _caches() -> list[str]:
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return [os.path.realpath(cache)] if os.path.isdir(cache) else []
