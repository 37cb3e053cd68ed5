"""Routes of the server itself: health, figures, documentation."""
