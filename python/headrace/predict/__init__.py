"""What a change would gain: search, comparison, replay, and jobs of many ranks."""
