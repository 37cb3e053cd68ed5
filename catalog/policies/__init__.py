"""The records of policies, their runs, and the regular expressions they name."""
