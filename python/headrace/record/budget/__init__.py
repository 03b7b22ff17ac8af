"""The wall clock of a run outside of steps and waits: looks at its thread, kept in a file."""
