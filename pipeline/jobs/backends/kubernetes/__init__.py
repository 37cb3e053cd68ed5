"""Jobs of a Kubernetes or OpenShift cluster: docs/decisions/0096."""
