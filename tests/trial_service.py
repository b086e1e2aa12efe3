"""The driver `trial`, and the service with it in a process of its own."""

from flask.cli import FlaskGroup

from app import create_app
from gateways import registry
from gateways.sandbox.driver import SandboxDriver


class Trial(SandboxDriver):
    """The sandbox's driver under a name that production mode accepts: the upstream of the tests."""

    name, title, about = "trial", "Trial", "The upstream of the tests."
    simulated = False  # the payment page shows its deposits as real ones


if __name__ == "__main__":
    registry.DRIVERS[Trial.name] = Trial
    FlaskGroup(create_app=create_app).main(args=["serve"])
