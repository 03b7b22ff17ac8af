"""``headrace mcp``: the runs of a folder for assistants, over the Model Context Protocol.

`tools` answers, `server` speaks the protocol with its official SDK (the extra ``mcp``).
"""
