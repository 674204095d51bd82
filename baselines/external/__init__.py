"""Memories that are not written for this protocol: an object, a server, an MCP tool.

``config`` holds the settings, ``store`` what each of the three kinds must do, ``memory`` the memory of one conversation
over a store. ``objects`` calls an object's methods by their signatures, ``http_server`` a memory behind HTTP,
``mcp_server`` the tools of an MCP server; ``found`` reads what a search returned.
"""
