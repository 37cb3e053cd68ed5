"""A run in numbers, for jobs that plan it and the training program that computes it. Leaves."""
