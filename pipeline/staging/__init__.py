"""Bringing a manifest's files into a cache near the job."""
