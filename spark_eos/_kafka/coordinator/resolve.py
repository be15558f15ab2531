"""Driver. A name lookup that ends with the deadline; the system's own knows none."""

import ipaddress
import socket
import threading

from spark_eos._deadline import Deadline


def resolves(server: str, deadline: Deadline) -> bool:
    """Whether looking up the host of `host:port` comes to an end in time, found or not.

    The thread may be left behind. What it finds is not used: the client looks again by itself.
    """
    host = server.rpartition(":")[0].strip("[]") or server
    try:
        ipaddress.ip_address(host)
    except ValueError:
        lookup = threading.Thread(target=_look_up, args=(host,), name="lookup", daemon=True)
        lookup.start()
        lookup.join(deadline.remaining_s)
        return not lookup.is_alive()
    return True


def _look_up(host: str) -> None:
    try:
        socket.getaddrinfo(host, None)
    except OSError:
        return  # the connection will say so
