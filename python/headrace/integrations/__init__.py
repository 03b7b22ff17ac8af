"""Callbacks of training frameworks, one module each: ``from headrace.integrations.lightning import ...``.

They record the DataLoaders of a trainer as ``headrace run`` does, and log the verdict at the end of each
epoch through the framework's own logger. Nothing of a framework is imported before its module is.
"""
