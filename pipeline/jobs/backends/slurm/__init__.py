"""Jobs of a Slurm cluster: docs/decisions/0052."""
