"""``headrace run``: an unchanged script in a process of its own, every loader of it recorded.

::

    parent (headrace run)                            child (python SCRIPT ARGS)
    run folder, environment ──── starts ───────────▶ inject/sitecustomize.py: an import hook, nothing else
    forwards signals, waits                          torch's loaders are imported: the adapter records them
    reads the run folder   ◀──── segments ────────── returns, raises, is killed: what was counted stays
    prints the report, ends as the child did
"""
