"""Where a scan's frames are counted."""
