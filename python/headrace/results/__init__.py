"""What a recording says: profiles, reports, and where they lie."""
