"""Task worker. The ids of topics, asked for before the first row is sent to one.

An id that is the same before the rows were sent and when they are decided says that they are in the
topic that is there. It may be from long before, so a worker keeps it for as long as a run of the
query lasts. A new run asks again: a person may have replaced the topic in between.
"""

from spark_eos.deadline import Deadline
from spark_eos.kafka.client_config import ClientConfig
from spark_eos.kafka.cluster import topic_ids

# Of the last run only: its id, and the ids of topics by client and name.
_known: dict[str, dict[tuple[ClientConfig, str], str | None]] = {}


def topic_id(config: ClientConfig, topic: str, run_id: str, deadline: Deadline) -> str | None:
    """The id that the topic has, or had earlier in this run; None where the cluster gives none."""
    if run_id not in _known:
        _known.clear()
    known = _known.setdefault(run_id, {})
    if (config, topic) not in known:
        known[config, topic] = topic_ids(config, [topic], deadline)[topic]
    return known[config, topic]
