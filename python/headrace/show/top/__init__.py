"""``headrace top``: a run in a terminal, live.

`followed` finds and reads the run, and says a line now and then where there is no terminal; `words` says
what a row holds, `app` shows it (Textual, the extra ``top``).
"""
