"""The basics of a service process: clock, storage health, files, rate limits, logs, workers, counters.

It knows nothing of orders and imports no other package of services.
"""
