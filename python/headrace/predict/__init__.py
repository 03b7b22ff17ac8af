"""The gain of a change: search, comparison, replay, and jobs of many ranks."""
