"""Sources in S3 buckets: their listing, their objects, and how they are asked for archived ones."""
