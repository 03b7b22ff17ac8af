"""Truth by experiment: pipelines of real work, each part taken away in turn, beside what was said of them."""
