"""Files and frames: how they are written and found again."""
