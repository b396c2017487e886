"""Real operators as processes on loopback, each under its own service account, behind podgate."""
