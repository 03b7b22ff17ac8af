"""`params`: what a script was set to, for the table of its runs."""

from __future__ import annotations

from headrace import _core
from headrace.common.handlers import let_through
from headrace.common.messages import warn_once
from headrace.record.hooks import on_loader
from headrace.record.session import enabled

#: Parameters given before the run has a folder.
_given: dict[str, object] = {}


def params(**parameters: object) -> None:
    """Keep what this run is set to, beside its recording: ``hr.params(lr=0.1, model="resnet50")``.

    `runs` and ``headrace ls`` show it. Numbers, short words and paths are kept as texts, of everything else
    only the name. May be called several times, also before a loader is recorded; the last value counts. With
    HEADRACE=0 it does nothing. Never raises.
    """
    if not enabled():
        return
    _given.update(parameters)
    session = _core.current_session()
    if session is not None:
        _write(session)
    elif _loader_recorded not in on_loader:
        on_loader.append(_loader_recorded)  # a run's folder is made with its first loader


def _loader_recorded(handle: _core.LoaderHandle) -> None:
    _write(handle.session)


def _write(session: _core.Session) -> None:
    from headrace.results import script_parameters

    if not _given:
        return
    given = dict(_given)
    _given.clear()
    try:
        script_parameters.write(session.run, session.rank, script_parameters.cleaned(given))
    except Exception as error:
        let_through(error)
        warn_once(f"parameters are not kept: {error}")
