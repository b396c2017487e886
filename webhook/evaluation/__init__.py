"""What one decision works on: request, intent, server defaults, state and outcome."""
