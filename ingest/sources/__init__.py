"""Sources: folders, tar archives and S3, listed and read."""
