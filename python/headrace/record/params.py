"""`params`: what a script was set to, for the table of its runs."""

from __future__ import annotations

from headrace.common.handlers import let_through
from headrace.common.messages import warn_once
from headrace.record.session import enabled, kept_open, open_session


def params(**parameters: object) -> None:
    """Keep what this run is set to, beside its recording: ``hr.params(lr=0.1, model="resnet50")``.

    `runs` and ``headrace runs`` show it. Values are kept as texts; what is called "password", "token" or the
    like is left out. May be called several times; the last value counts. With HEADRACE=0 it does nothing.
    Never raises.
    """
    if not enabled():
        return
    from headrace.results import script_parameters

    try:
        session = open_session(None, None)
        kept_open.add(session)
        script_parameters.write(session.run, session.rank, script_parameters.cleaned(parameters))
    except Exception as error:
        let_through(error)
        warn_once(f"parameters are not kept: {error}")
