"""From the command line of ``headrace run`` to the end of the script."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, NoReturn

from headrace.common.launcher import speaks_for_job
from headrace.common.messages import say
from headrace.common.plain import typed_error_line
from headrace.errors import UsageError
from headrace.record.hooks import CEILING, FOUND
from headrace.record.session import enabled
from headrace.run.child import end_as, ending, run_child
from headrace.run.environment import python_command, recording_environment, records_already
from headrace.run.folder import RunFolder, choose_run_folder
from headrace.run.summary import print_summary, show_page
from headrace.watch.watching import WATCH


def _keep_parameters(folder: RunFolder, program: Sequence[str]) -> None:
    """The options of the script, beside its recording, for `headrace ls`."""
    from headrace.results import script_parameters

    arguments = list(program[2:] if program[0] == "-m" else program[1:])
    if program[0] == "-m":  # a launcher's own options come before its script
        scripts = [at for at, one in enumerate(arguments) if one.endswith(".py")]
        arguments = arguments[scripts[0] + 1 :] if scripts else arguments
    found = script_parameters.of_command_line(arguments)
    try:
        if found and folder.new_segments():
            script_parameters.write(folder.path, 0, found)
    except Exception as error:  # the status must still be returned
        say(f"the options of the script are not kept: {typed_error_line(error)}")


def _file_of_what_is_found() -> IO[str]:
    """Goes when it is closed. Without a place for it the script runs all the same."""
    try:
        return tempfile.NamedTemporaryFile("r", encoding="utf-8", errors="replace", prefix="headrace-")
    except OSError:
        return open(os.devnull, encoding="utf-8")  # noqa: PTH123


def launch(
    program: Sequence[str],
    out: str | None,
    ceiling: bool = False,
    open_page: bool = False,
    watch: bool = False,
) -> NoReturn:
    """Run ``program`` (a script or ``-m`` and a module, arguments), print its report, end as it ended.

    ceiling: its loops go on with cached batches for some steps. open_page: the report also as a page.
    watch: the data is looked at.
    """
    command = python_command(program)
    if not enabled():
        end_as(run_child(command, os.environ))
    # One report in a job: by rank 0, and by the outer of two runs that record into one folder.
    speaks = speaks_for_job() and (out is not None or not records_already(os.environ))
    folder = choose_run_folder(out)
    if folder.problem and speaks:
        say(f"cannot record in {folder.problem}; recording in {folder.path} instead")
    environment = recording_environment(os.environ, folder.path)
    if ceiling and speaks:
        environment[CEILING] = "1"
    if watch:
        environment[WATCH] = "1"
    began = time.monotonic()
    with _file_of_what_is_found() as found:
        status = run_child(command, {**environment, FOUND: found.name} if speaks else environment)
        batches_from = found.read()
    if speaks:
        _keep_parameters(folder, program)
        report = print_summary(folder, ending(status, time.monotonic() - began), ceiling, batches_from)
        if open_page and report is not None:
            show_page(report, folder.path)
    end_as(status)


def program_of(script: str, arguments: Sequence[str], is_module: bool) -> list[str]:
    """The program to start, for `launch`. Raises UsageError if there is none."""
    path = Path(script)
    if not is_module and script != "-":  # the program comes on stdin
        if not path.exists():
            raise UsageError(f"{script}: no such script")
        if path.is_dir() and not (path / "__main__.py").exists():
            raise UsageError(f"{script}: a folder without __main__.py, not a script")
    return ["-m", script, *arguments] if is_module else [script, *arguments]
