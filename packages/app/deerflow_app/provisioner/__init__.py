"""The provisioner: a service that gives each thread a pod of a Kubernetes cluster. See ``docs/kubernetes.md``."""
