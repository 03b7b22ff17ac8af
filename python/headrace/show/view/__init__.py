"""``headrace view``: the runs of a folder in a browser, live while they record.

The pictures and sentences are the report page's own (`Report.to_html`): while a run goes on, the server
renders them again, and a small script replaces what has changed. Starlette and uvicorn serve it (the extra
``view``).
"""
