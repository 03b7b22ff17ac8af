"""What people look at: the command line, pages, live views, notebooks."""
