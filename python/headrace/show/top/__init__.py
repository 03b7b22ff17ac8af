"""``headrace top``: a run in a terminal, live.

`followed` finds and reads the run, `words` says what a row holds, `app` shows it (Textual, the extra
``top``), `lines` prints where there is no terminal.
"""
