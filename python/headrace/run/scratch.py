"""The folders in which trials of ``headrace tune`` run, so that they change no file of the user's."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from headrace.common.owned_folder import OwnedFolder, remove_tree
from headrace.errors import Error
from headrace.run.work_copy import CopySizeError, WorkCopy, is_inside
from headrace.run.write_guard import can_guard_writes, guard_writes

#: Bytes that are copied for each trial at most.
LARGEST_BYTES = 200 << 20
#: Names that nothing else uses: leftovers of killed commands are found by them.
_SCRATCH, _COPY = "headrace-trials-", ".headrace-copy-"
#: How names begin that are not copied: recordings of earlier runs are no input of the script.
_LEFT_OUT = ("headrace-runs", _SCRATCH, _COPY)


class TrialPlace(NamedTuple):
    """The folder of one trial."""

    #: Its working folder.
    folder: str
    #: For our own files about it; removed after the trial.
    scratch: str
    #: To be called in the script's process before the script; None: nothing. Raises OSError.
    prepare: Callable[[], object] | None
    #: More variables for the script's environment.
    environment: dict[str, str]
    #: Paths that must be removed if this process is killed.
    owned: list[str]


class WorkingFolder:
    """The folder of the script, and how its trials are kept from changing it.

    A trial runs in a copy, and the kernel refuses writes elsewhere. Where it cannot, nothing runs unless the
    user asks for trials in the folder itself.
    """

    def __init__(self, in_place: bool, arguments: Sequence[str]) -> None:
        """arguments: of the script, its own name among them. Raises Error if no trial can run."""
        self._folder = os.path.realpath(Path.cwd())
        self._name = Path(self._folder).name
        self._in_place = in_place
        self._unreadable: list[str] = []
        self._leads_out: dict[str, str] = {}
        if not in_place and not can_guard_writes():
            raise Error(
                "nothing was run: trials run in a copy, and this kernel cannot refuse writes outside of it "
                "(Landlock, from Linux 5.19 on). Use --in-place if the script may overwrite its files"
            )
        self._scratch = OwnedFolder(_SCRATCH)
        try:
            if not in_place:
                with ExitStack() as stack:
                    self._copy(stack)
                self._writable = self._writable_folders(arguments)
        except BaseException:
            self._scratch.remove()
            raise

    def __enter__(self) -> WorkingFolder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._scratch.remove()

    @property
    def in_words(self) -> str:
        if self._in_place:
            return f"trials run in {self._name}/ itself: what the script writes, it writes there"
        said = (
            f"each trial runs in a copy of {self._name}/, which is removed. A write elsewhere is refused, "
            "except in folders for temporary files and caches"
        )
        for what, paths in (
            ("Read-only, because the link leads out of the folder", list(self._leads_out.values())),
            ("Not in the copy, because it cannot be read", self._unreadable),
        ):
            if paths:
                more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
                said += f". {what}: {paths[0]}{more}"
        return said

    @contextmanager
    def entered(self) -> Iterator[TrialPlace]:
        """The place of one trial."""
        scratch = f"{self._scratch.path}/trial"
        owned = [self._scratch.path]
        Path(scratch).mkdir()
        with ExitStack() as stack:
            stack.callback(remove_tree, scratch)
            if self._in_place:
                yield TrialPlace(self._folder, scratch, None, {}, owned)
                return
            copy = self._copy(stack)
            # If the user's files are among the temporary ones, the script gets a folder of its own for those.
            environment = {} if tempfile.gettempdir() in self._writable else {"TMPDIR": scratch}
            guard = partial(guard_writes, [*self._writable, copy, scratch])
            yield TrialPlace(copy, scratch, guard, environment, [*owned, copy])

    def _copy(self, stack: ExitStack) -> str:
        # Beside the original, so that `../data` is found.
        above = Path(self._folder).parent
        beside = above if os.access(above, os.W_OK) else None
        folder = stack.enter_context(OwnedFolder(_COPY, beside)).path
        copy = WorkCopy(self._folder, folder, _LEFT_OUT, LARGEST_BYTES)
        try:
            copy.make()
        except CopySizeError:
            raise Error(
                f"{self._name}/ is too large to copy for each trial (more than {LARGEST_BYTES >> 20} MB). "
                "Start in a smaller folder, or use --in-place if the script may overwrite its files"
            ) from None
        except OSError as error:
            raise Error(f"{self._name}/ cannot be copied into {folder}: {error.strerror or error}") from None
        self._unreadable, self._leads_out = copy.unreadable, copy.leads_out
        return folder

    def _writable_folders(self, arguments: Sequence[str]) -> list[str]:
        """Temporary files, devices, settings and caches, where nothing of the script's results is."""
        home = Path.home()
        cache = os.environ.get("XDG_CACHE_HOME") or f"{home}/.cache"
        found = ["/dev", "/proc", "/run", "/tmp", "/var/tmp", tempfile.gettempdir(), os.path.realpath(cache)]
        if home.is_dir():
            found += [str(each) for each in home.glob(".*") if each.is_dir() and not each.is_symlink()]
        results = {self._folder, *self._leads_out, *(self._named(each) for each in arguments)} - set(found)
        return [each for each in found if not any(is_inside(place, each) for place in results)]

    def _named(self, argument: str) -> str:
        """The folder that an argument names: ``--out=results``, ``results/last.pt``."""
        path = Path(self._folder, argument.partition("=")[2] or argument).resolve()
        return str(next(each for each in (path, *path.parents) if each.is_dir()))
