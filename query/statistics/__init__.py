"""Statistics of frames: classes, histograms, gaps, correlations."""
