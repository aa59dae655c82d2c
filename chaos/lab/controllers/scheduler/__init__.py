"""kube-scheduler."""
