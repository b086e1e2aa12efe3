"""The service with the driver `trial`, in a process of its own: the sandbox's upstream for tests of production mode."""

from flask.cli import FlaskGroup

from app import create_app
from gateways import registry
from gateways.sandbox.driver import SandboxDriver
from tests.support import Service


class Trial(SandboxDriver):
    """The sandbox's driver under a name that production mode knows."""

    name = "trial"


class TrialService(Service):
    """A service that knows this driver."""

    entry = ("-m", "tests.trial_service")


if __name__ == "__main__":
    registry.DRIVERS[Trial.name] = Trial
    FlaskGroup(create_app=create_app).main(args=["serve"])
