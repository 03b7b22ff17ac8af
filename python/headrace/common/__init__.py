"""What every room may use: it knows nothing of loaders, recordings or reports."""
