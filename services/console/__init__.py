"""The console's services: lists, to-do counts, alerts, statistics, order details and actions.

The console and the command line use it; no other package of services imports it, except for the jobs.
"""
