"""The basics of a service process: clock, storage health, files, images, rate limits, logs, workers, counters.

This package does not know orders and imports no other package of services.
"""
