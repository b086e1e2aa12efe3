"""The merchants' API, channel notices, region look-ups, health and metrics, with what guards them."""
