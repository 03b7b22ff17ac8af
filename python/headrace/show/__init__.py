"""Surfaces for people: the command line, pages, live views, notebooks."""
