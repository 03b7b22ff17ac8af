"""Recordings, read: profiles, reports, and the places where they lie."""
