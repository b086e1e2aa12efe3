"""The sandbox driver and the simulated upstream that it calls."""
