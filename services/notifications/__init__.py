"""Notifications of findings: destinations, the messages that are due (watch), and their delivery by email and HTTP.

The jobs call `watch.evaluate` and `delivery.sweep`. No transaction uses the network: messages are rows first.
"""
