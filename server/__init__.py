"""The HTTP server: granian takes requests in, threads of this process answer them."""

from server.cores import CORES, core_of_its_own, on_any_core, staying_on
from server.listener import Server, until_asked
from server.threads import may_have

__all__ = ["CORES", "Server", "core_of_its_own", "may_have", "on_any_core", "staying_on", "until_asked"]
