"""`Report`: what was recorded of one loader and what it means."""

from __future__ import annotations

import os
import sys
from functools import cached_property
from typing import TYPE_CHECKING, Any

from headrace import _core
from headrace.common.page import HasPage
from headrace.errors import Error, UsageError

if TYPE_CHECKING:  # dataclasses and json cost more to import than the rest of the package
    import pandas

    from headrace.results.data import Advice, Diagnosis, Prediction, Steps
    from headrace.results.figures import BudgetPart, Finding, Profile, SecondOpinion
    from headrace.results.profiler_tables import Tables
    from headrace.traces.trace import Trace


def segments_of(session: _core.Session) -> tuple[str, ...]:
    """Path of its segment while it records, and of the copy after its end."""
    return session.live_path, os.path.join(session.run, f"rank{session.rank}.hrseg")  # noqa: PTH118


class Report(HasPage):
    """A profile, its diagnosis and its step trace. ``print(report)`` is the text.

    Immutable; the diagnosis is computed from the profile alone, so a loaded report does not change.
    """

    def __init__(
        self,
        profile_json: str,
        *,
        loaders: list[str] | None = None,
        ranks: list[int] | None = None,
        segments: tuple[str, ...] = (),
        folder: str | None = None,
    ) -> None:
        self._profile_json = profile_json
        #: Another profiler's folder; its tables are read when they are asked for.
        self._folder = folder
        self._parsed = _core.ParsedReport(profile_json)
        self._loaders = loaders
        self._ranks = ranks
        #: Paths of the segment, for the history, which is not part of a report: a run that ends moves it.
        self._segments = segments

    # Text and page need none of these; as Python objects, the figures of 64 workers take long to build.
    @cached_property
    def _document(self) -> dict[str, Any]:
        import json

        document: dict[str, Any] = json.loads(self._parsed.json(-1))
        return document

    @cached_property
    def profile(self) -> Profile:
        """The recording."""
        from headrace.results.data import build
        from headrace.results.figures import Profile

        return build(Profile, self._document["profile"])

    @cached_property
    def diagnosis(self) -> Diagnosis:
        """The verdict on it, with evidence and advice."""
        from headrace.results.data import Diagnosis, build

        return build(Diagnosis, self._document["diagnosis"])

    @property
    def bottleneck(self) -> str | None:
        """Name of the operator to act on; None if the input is not the limit, or if that is unknown."""
        return self.diagnosis.operator

    @property
    def advice(self) -> list[Advice]:
        """The changes to make, best first; empty if there are none."""
        return self.diagnosis.advice

    @cached_property
    def steps(self) -> Steps:
        """The step trace."""
        from headrace.results.data import Steps, build

        return build(Steps, self._document["steps"])

    @property
    def findings(self) -> list[Finding]:
        """Faults of the data and the training, worst first; empty where nobody watched."""
        return self.profile.findings

    @property
    def budget(self) -> list[BudgetPart]:
        """The parts of the wall clock of the rank's run, the largest first; empty where unknown."""
        return self.profile.budget

    def samples(self, kind: str) -> list[int]:
        """Dataset indices of the samples that findings of ``kind`` name, for `torch.utils.data.Subset`.

        kind: "nonfinite_batch", "constant_samples" and so on (docs/watch.md). At most 1,000 of each finding.
        Raises UsageError for another kind.
        """
        from headrace.results.findings import KINDS

        if kind not in KINDS:
            raise UsageError(f"no kind of finding is {kind!r}; there are {', '.join(sorted(KINDS))}")
        return sorted({index for one in self.findings if one.kind == kind for index in one.samples})

    @property
    def second_opinions(self) -> list[SecondOpinion]:
        """Conclusions of other tools from the same files; empty for what Headrace recorded itself."""
        return self.profile.second_opinions

    @property
    def tables(self) -> Tables:
        """The tables of the files that the report was read from, by name: ``report.tables["steps"]``.

        Of a folder of MindSpore's profiler: steps, collectives, batches, operators of the device, memory,
        FLOPs, as far as it has their files. Empty for other reports, saved ones included.
        """
        from headrace.results.profiler_tables import Tables

        return Tables(self._folder, self.rank)

    @property
    def loaders(self) -> list[str]:
        """Names of the loaders in the same run: first those that train, then those that are evaluated on; of
        each kind, the one that waited longest first."""
        return self._loaders if self._loaders is not None else [self.loader]

    @property
    def ranks(self) -> list[int]:
        """Ranks that recorded."""
        return self._ranks if self._ranks is not None else [self.rank]

    @classmethod
    def from_profile_json(cls, text: str) -> Report:
        """A report on a `Profile` in JSON. Raises FormatError for anything else."""
        return cls(text)

    @classmethod
    def load(cls, path: str | os.PathLike[str], loader: str | None = None, rank: int | None = None) -> Report:
        """The report of a run folder (running, finished or dead), one .hrseg segment, or a saved report.

        Also of a folder that MindSpore's profiler wrote (its ``profiler/`` or the folder above it), see
        docs/mindspore.md, and of a trace that shows the input (`of_trace`). Reading changes nothing.

        loader: its name; default the first of `loaders`. rank: default the lowest recorded one.
        Raises SegmentError, FormatError or Error with one line that says what is wrong.
        """
        from headrace.results.load import load_report

        return load_report(cls, path, loader, rank)

    @classmethod
    def of_trace(cls, trace: Trace) -> Report | None:
        """The report on the input that a device's trace shows (of several ranks, the first).

        What a profiler of JAX or TensorFlow records of tf.data's iterators, or of the range around a loop's
        call for its next batch. None where there is neither; PyTorch's loaders have to be wrapped.
        """
        from headrace.results.load import report_of

        return report_of(cls, trace)

    @property
    def loader(self) -> str:
        return self._parsed.loader

    @property
    def rank(self) -> int:
        return self._parsed.rank

    def what_if(self, **changes: object) -> Prediction:
        """The step's time with other parameters, from a simulation of this run.

        ``report.what_if(num_workers=4, prefetch_factor=8)``; for a pipeline of threads and queues
        ``report.what_if(**{"decode.workers": 4, "decoded.capacity": 16})``; for both, an operator made
        faster: ``{"decode.speedup": 2}``. All changes are made together.

        Returns a `Prediction`: ``step_s``, ``low``, ``high`` (seconds per step and its interval),
        ``speedup``, and ``bottleneck``, what limits then (an operator's name, "sink", or "cpu"); each is an
        attribute and an entry of a dict. If no prediction is possible, they are None and ``reason`` says why.
        Raises UsageError for a parameter that this loader does not have (the message lists those that it
        has), for a number given as a text, and for a value out of range.
        """
        from headrace.common.plain import short
        from headrace.results.data import Prediction

        for name, value in changes.items():
            if isinstance(value, str) and _is_number(value):
                name, value = short(name), short(value)
                raise UsageError(f"{name}={value!r} is a text; give the number: {name}={value}")
        known, reason, step_s, low_s, high_s, limit = self._parsed.what_if(
            [(short(name), short(value)) for name, value in changes.items()]
        )
        if not known:
            return Prediction(step_s=None, low=None, high=None, speedup=None, bottleneck=None, reason=reason)
        speedup = self.profile.sink.step_s / step_s if step_s > 0 else None
        return Prediction(step_s=step_s, low=low_s, high=high_s, speedup=speedup, bottleneck=limit)

    def with_trace(
        self,
        trace: Trace | str | os.PathLike[str],
        *,
        fp_point: str | None = None,
        bp_point: str | None = None,
    ) -> Report:
        """This report with what the device did: the parts of its steps, and why it was idle.

        ``trace``: a `Trace` or its file, of this rank if there are several. The GetNext waits are those
        that the run recorded. For a saved report without its run, they are those of the trace itself.

        ``fp_point``, ``bp_point``: names of the work that forward begins and backward ends with, see
        `Trace.step_points`. If the trace does not show the parts of a step, `steps` keeps those of the
        hooks or the loader. Raises UsageError if the trace has no work on a device, nothing of this rank, or
        no work by a given name.
        """
        from headrace.traces.step_points import point_names
        from headrace.traces.trace import Trace

        device = trace if isinstance(trace, Trace) else Trace.load(trace)
        segment = self._segment()
        if len(device) > 1:
            device = device.rank(self.rank)
        points = point_names(device._traces, fp_point, bp_point)
        text, told = _core.with_device(self._profile_json, device._traces, segment, *points)
        if not told:
            raise UsageError(
                f"{device.files[0]}: no work on a device in it, so nothing to say about idle time"
            )
        return Report(
            text, loaders=self._loaders, ranks=self._ranks, segments=self._segments, folder=self._folder
        )

    def to_text(self, width: int = 100, color: bool = False) -> str:
        """The report for people, no line wider than ``width`` columns (at least 40)."""
        return self._parsed.text(int(width), bool(color))

    def _page(self) -> str:
        """Its parts: docs/report.md."""
        return self._html(segment=self._segment())

    def _html(
        self,
        whole_page: bool = True,
        segment: str = "",
        shown: tuple[float, float] = (0.0, 0.0),
        range_link: str = "",
    ) -> str:
        """segment: of the run, for a lane per worker. shown: seconds since the first GetNext; (0, 0): the
        newest steps. range_link: the address to which ``from=1.5&to=2.5`` is added for others.
        """
        import json

        from headrace.pages import plots, render

        page = json.loads(self._parsed.page(segment, *shown))
        plot = plots.Curve(self._parsed.curve(), page["own_s"], [])
        return render("report", whole_page, page=page, plot=plot, range_link=range_link)

    def _segment(self) -> str:
        """The path of the segment now; "" if it is gone, or the name of a folder cannot be printed."""
        known = (path for path in self._segments if os.path.exists(path))  # noqa: PTH110
        return next((path for path in known if path.isprintable()), "")

    def to_pandas(self, part: str = "operators") -> pandas.DataFrame:
        """One of the report's lists as a data frame: operators, workers, queues, windows, stall_ledger,
        longest_waits, steps or advice. Columns are figures, those of a struct ``states.busy``.

        Raises UsageError for another part, and if pandas is not installed.
        """
        from headrace.results.frames import frame

        return frame(self._document, part)

    def to_profile_json(self) -> str:
        """The recording in JSON, which `from_profile_json` reads."""
        return self._profile_json

    def to_dict(self) -> dict[str, Any]:
        """The JSON document as plain data."""
        import json

        document: dict[str, Any] = json.loads(self.to_json())
        return document

    def to_json(self, indent: int | None = 2) -> str:
        """``{"version", "loader", "rank", "profile", "diagnosis", "findings", "steps"}``.

        No paths, no host.
        """
        return self._parsed.json(-1 if indent is None else indent)

    def to_summary(self) -> dict[str, Any]:
        """The essence of `to_dict`, at most 4 kB as JSON: for a script, a log or an assistant to read.

        ``{"summary": 1, "loader", "rank", "verdict", "step", "advice", "risks", "operators", "queues",
        "evidence", "settings", "windows", "loaders", "ranks", "left_out"}``; docs/integrations.md
        explains it. Figures have the names that they have in the whole document.
        """
        from headrace.results.summary import summary

        return summary(self._document, self.loaders, self.ranks)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the JSON document, which `load` reads back; as ``.html`` the page of `to_html`."""
        if os.fspath(path).endswith(".html"):
            self.to_html(path)
            return
        with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123 - pathlib costs 5 ms to import
            file.write(self.to_json() + "\n")

    def __reduce__(self) -> tuple[Any, ...]:
        return _read_again, (self._profile_json, self._loaders, self._ranks, self._segments, self._folder)

    def __str__(self) -> str:
        import shutil

        on_terminal = sys.stdout is not None and sys.stdout.isatty()
        width = shutil.get_terminal_size((100, 24)).columns if on_terminal else 100
        text = self.to_text(width=min(width, 120), color=on_terminal and "NO_COLOR" not in os.environ)
        # `print` must not fail on a terminal that cannot show an arrow.
        encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
        return text.encode(encoding, "replace").decode(encoding)

    def __repr__(self) -> str:
        said = self.diagnosis
        about = f" {said.operator}" if said.operator else ""
        cause = f" ({said.cause})" if said.cause else ""
        return (
            f"<headrace.Report {self.loader!r}: {said.kind}{about}{cause}, confidence {said.confidence:.2f}>"
        )

    def _repr_html_(self) -> str:
        """The page for a notebook's cell, in its own frame, so styles do not mix."""
        import html

        page = html.escape(self._html())
        # A short page whole; a long one scrolls in its frame, so that the next cell is not far away.
        fit = "this.style.height=Math.min(900,this.contentDocument.documentElement.scrollHeight+4)+'px'"
        return (
            f'<iframe srcdoc="{page}" title="Headrace report" onload="{fit}" '
            'style="width:100%;height:720px;border:0"></iframe>'
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return text.strip().lower() in ("true", "false")
    return True


def report_of_loop(handle: _core.LoaderHandle, epoch: Any = None) -> Report:
    """The report on ``handle`` so far, or on one epoch (1 the first, -1 the last; four are kept).

    Raises UsageError for an epoch that is not kept.
    """
    if epoch is not None and (isinstance(epoch, bool) or not isinstance(epoch, int) or epoch == 0):
        raise UsageError("epoch is a number from 1, or -1 for the last one")
    profile_json = handle.profile_json(epoch or 0)
    session = handle.session
    image = _image_of(session)
    if image is not None:
        from headrace.results.run_files import with_run_files

        profile_json = with_run_files(profile_json, session.run, image)
    return Report(profile_json, segments=segments_of(session))


def _image_of(session: _core.Session) -> _core.SegmentImage | None:
    """None: it has no file, or closes now."""
    try:
        return _core.SegmentImage(session.live_path) if session.live_path else None
    except Error:
        return None


def __getattr__(name: str) -> Any:
    """`Profile`, `Diagnosis`, `Operator`, `Queue`, `Advice` and the other classes of a report's figures."""
    if not name.startswith("_"):
        from headrace.results import data as _data
        from headrace.results import figures as _figures
        from headrace.results import loader_model as _loader_model

        for module in (_figures, _loader_model, _data):
            found = getattr(module, name, None)
            if isinstance(found, type) and found.__module__ == module.__name__:
                return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _read_again(
    profile_json: str,
    loaders: list[str] | None,
    ranks: list[int] | None,
    segments: tuple[str, ...] = (),
    folder: str | None = None,
) -> Report:
    """A pickled or copied report."""
    return Report(profile_json, loaders=loaders, ranks=ranks, segments=segments, folder=folder)
