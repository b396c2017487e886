"""What server and controller share: settings, TLS, metrics, logs, traces."""
