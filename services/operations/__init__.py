"""What operators do with orders, one by one or many at once, and the queues of what they have to do."""
