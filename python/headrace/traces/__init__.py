"""Device traces: reading them, and tables over them."""
