"""The sandbox's doors: telling the simulator what becomes of orders, its clock, and a merchant's receiver."""

from blueprints.sandbox import inbox, recording, simulator
from blueprints.sandbox.doors import sandbox

__all__ = ["inbox", "recording", "sandbox", "simulator"]
