"""What runs by time: the table of jobs, and the sweep of due orders."""
