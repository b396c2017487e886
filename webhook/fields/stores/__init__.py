"""Where the items of fields are in a pod: variables, labels, tolerations, annotations, ports."""
