"""Code that runs in the user's process: sessions, operators, steps, and the loops of trials."""
