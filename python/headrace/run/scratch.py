"""Where the trials of ``headrace tune`` run, so that they change no file of the user's."""

from __future__ import annotations

import json
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
from headrace.run.mounts import Layers, mount_layers
from headrace.run.trial_layers import scratch_parent, trial_layers, writable_folders
from headrace.run.work_copy import CopySizeError, WorkCopy
from headrace.run.write_guard import can_guard_writes, guard_writes

#: Bytes that are copied for each trial at most.
LARGEST_BYTES = 200 << 20
#: Recordings of earlier runs are no input of the script.
_LEFT_OUT = "headrace-runs"
#: Names that nothing else uses: leftovers of killed commands are found by them.
_SCRATCH, _COPY = "headrace-trials-", ".headrace-copy-"


class TrialPlace(NamedTuple):
    """Where one trial runs."""

    #: Its working folder.
    folder: str
    #: For our own files about it; removed after the trial.
    scratch: str
    #: To be called in the script's process before the script; None: nothing. Raises OSError.
    prepare: Callable[[], object] | None
    #: What the script's environment must have besides.
    environment: dict[str, str]
    #: What must be removed if this process is killed.
    owned: list[str]


class WorkingFolder:
    """The folder of the script, and how its trials are kept from changing it.

    With an overlay mount the script runs in the folder itself, and sees its own writes only. Where mounts are
    not allowed, it runs in a copy, and cannot write elsewhere where the kernel can refuse that.
    """

    def __init__(self, in_place: bool, arguments: Sequence[str]) -> None:
        """arguments: of the script, its own name among them. Raises Error if no copy can be made."""
        self._folder = str(Path.cwd())
        self._unreadable: list[str] = []
        self._uncovered: list[str] = []
        self._layers: Layers | None = None
        self._no_mount = "no overlay mount is possible (it has all folders for temporary files)"
        self._in_place = in_place
        self._guards_writes = can_guard_writes()
        parent = None
        if not in_place:
            layers = trial_layers(self._folder, arguments)
            self._writable = writable_folders(layers)
            parent = scratch_parent(layers)
            if parent is not None:
                self._layers = layers
        self._scratch = OwnedFolder(_SCRATCH, parent)
        try:
            if self._layers is not None:
                self._try_mounts(self._layers)
            if not in_place and self._layers is None:
                with ExitStack() as stack:
                    self._copy(stack)
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
        name = Path(self._folder).name
        if self._in_place:
            return f"trials run in {name}/ itself: what the script writes, it writes there"
        if self._layers is None:
            said = (
                f"each trial runs in a copy of {name}/, which is removed: {self._no_mount}. A write under an "
            )
            said += "absolute path "
            said += "is refused" if self._guards_writes else "goes where it always does"
        else:
            said = "what the script writes in a trial goes into a copy, which is removed, except in "
            said += "folders for temporary files and caches"
        if self._uncovered:
            said += f". Not protected: {', '.join(self._uncovered)}"
        if self._unreadable:
            more = f" and {len(self._unreadable) - 1} more" if len(self._unreadable) > 1 else ""
            said += f". Not in the copy, because it cannot be read: {self._unreadable[0]}{more}"
        return said

    @contextmanager
    def entered(self) -> Iterator[TrialPlace]:
        """The place of one trial."""
        scratch = f"{self._scratch.path}/trial"
        owned = [self._scratch.path]
        Path(scratch).mkdir()
        with ExitStack() as stack:
            stack.callback(remove_tree, scratch)
            layers = self._layers
            if layers is not None:
                prepare = partial(mount_layers, layers, f"{scratch}/layers")
                yield TrialPlace(self._folder, scratch, prepare, {}, owned)
            elif self._in_place:
                yield TrialPlace(self._folder, scratch, None, {}, owned)
            else:
                copy = self._copy(stack)
                guard, environment = self._guard(copy, scratch)
                yield TrialPlace(copy, scratch, guard, environment, [*owned, copy])

    def _try_mounts(self, layers: Layers) -> None:
        """In another process, because mounts of this one would hide the user's files from it, too."""
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            answer: list[str] | str = ""
            try:
                answer = mount_layers(layers, f"{self._scratch.path}/probe")
            except OSError as error:
                answer = str(error)
            finally:
                os.write(writing, json.dumps(answer).encode())
                os._exit(0)
        os.close(writing)
        with os.fdopen(reading, "rb") as file:
            found = json.loads(file.read() or '""')
        os.waitpid(child, 0)
        remove_tree(f"{self._scratch.path}/probe")
        if isinstance(found, list):
            self._uncovered = found
        else:
            self._layers = None
            self._no_mount = f"no overlay mount is possible ({found})"

    def _guard(self, copy: str, scratch: str) -> tuple[Callable[[], object] | None, dict[str, str]]:
        if not self._guards_writes:
            return None, {}
        # If the user's files are among the temporary ones, the script gets a folder of its own for those.
        temporary = tempfile.gettempdir()
        environment = {} if temporary in self._writable else {"TMPDIR": scratch}
        return partial(guard_writes, [*self._writable, copy, scratch]), environment

    def _copy(self, stack: ExitStack) -> str:
        # Beside the original, so that `../data` is found.
        above = Path(self._folder).parent
        beside = above if os.access(above, os.W_OK) else None
        folder = stack.enter_context(OwnedFolder(_COPY, beside)).path
        copy = WorkCopy(self._folder, folder, _LEFT_OUT, LARGEST_BYTES)
        name = Path(self._folder).name
        try:
            copy.make()
        except CopySizeError:
            raise Error(
                f"{name}/ with what its links lead to is too large to copy for each trial (more than "
                f"{LARGEST_BYTES >> 20} MB), and {self._no_mount}. Start in a smaller folder, or use "
                "--in-place if the script may overwrite its files"
            ) from None
        except OSError as error:
            raise Error(f"{name}/ cannot be copied into {folder}: {error.strerror or error}") from None
        self._unreadable = copy.unreadable
        return folder
