"""The merchant API, channel notices, region look-ups, health checks and metrics, authentication, rate limits."""
