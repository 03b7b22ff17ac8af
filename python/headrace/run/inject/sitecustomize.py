# Runs at the start of every Python process below `headrace run`, before the user's program. That may be any
# Python, of any version and any environment: plain statements, nothing printed, nothing imported that the
# interpreter has not loaded by itself.
import os
import sys

_here = os.path.dirname(__file__)  # noqa: PTH120 - pathlib is not loaded yet

if sys.version_info >= (3, 10) and "HEADRACE_RECORD" in os.environ and os.environ.get("HEADRACE") != "0":
    try:
        import _headrace_import_hook  # type: ignore[import-not-found]

        _headrace_import_hook.install()
        _headrace_import_hook.watch_for_batches()
    except Exception:  # the user's program runs, recorded or not
        pass

# From here on the program's path and modules are those of a bare run.
while _here in sys.path:
    sys.path.remove(_here)
sys.path_importer_cache.pop(_here, None)

# The user's or the distribution's own sitecustomize (Debian and conda have one). Where there is none, the
# ImportError tells the interpreter so, and this module is forgotten, too; any other exception is reported as
# ever.
sys.modules.pop("sitecustomize", None)
import sitecustomize  # type: ignore[import-not-found]  # noqa: E402, F401
