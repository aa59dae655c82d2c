"""From a kubeconfig to an inventory: what is read of the cluster and of its hosts, and the files that are written."""
