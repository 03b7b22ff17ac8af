"""Code that every room may use; it depends on nothing of loaders, recordings or reports."""
