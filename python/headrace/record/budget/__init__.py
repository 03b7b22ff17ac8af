"""Where the wall clock of a run goes outside of steps and waits: looks at its thread, kept in a file."""
