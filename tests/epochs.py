"""The epochs of transactional ids, and how a test uses them up."""

from spark_eos._deadline import Deadline

LAST_EPOCH = 32766  # of a producer id: a producer begun after it gets another id


def wear(coordinator, epochs):
    """Bring each id to its epoch, one InitProducerId after the other: there is no shorter way."""
    wanted = dict(epochs)
    while wanted:
        fenced = coordinator.fence(
            list(wanted), timeout_ms=60_000, deadline=Deadline.after_ms(20_000)
        )
        for name, identity in fenced.items():
            if identity.producer_epoch >= wanted[name]:
                del wanted[name]
