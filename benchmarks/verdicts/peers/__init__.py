"""Other ways to judge the same draws: rules on the recorded profile, and tools that run by themselves."""
