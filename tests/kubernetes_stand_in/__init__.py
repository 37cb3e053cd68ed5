"""A strict stand-in of a Kubernetes cluster, whose pods run as processes of this machine.

`kubernetes_stand_in` (stand_in.py) starts one: the API over HTTP (api.py, access.py, objects.py,
schemas.py against the schemas of Kubernetes 1.37), the controllers of Jobs (jobs.py) and the
scheduler (scheduler.py), and kubelets (kubelet.py, container.py). Its words are those of the API
reference and of Kubernetes' sources. No real cluster of today stood beside it.
"""
