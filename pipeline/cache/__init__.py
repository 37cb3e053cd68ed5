"""Content of datasets near the jobs: files below one folder, which processes and hosts share."""
