"""The parts of the pages of jobs: curves, scores, the confusion matrix."""
