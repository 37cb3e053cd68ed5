"""From a selection to finished jobs: datasets, manifests, staging, job backends."""
