"""Takes the current folder, which Python searches first, off the folders that modules come from.

A file there with the name of a library's module would be executed in place of that.
"""

import os
import sys

_is_command = sys.argv[:1] == ["-m"] and sys.orig_argv[-len(sys.argv)] in ("headrace", "-mheadrace")
if _is_command and sys.path[:1] == [os.getcwd()]:  # noqa: PTH109 - pathlib is one of those modules
    del sys.path[0]
