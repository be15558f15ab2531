"""Ends transactions behind the product's back, with kafka-python's own admin client."""

from kafka import KafkaAdminClient
from kafka.protocol.producer.transaction import EndTxnRequest

from tests.chaos.oracle import assert_none_open


def end_open_transactions(scenario, commit_partitions):
    """Commit the open transactions of these sink partitions, abort all others; wait for markers.

    Where the query moves a group, "offsets" stands for the transaction that holds its offsets.
    """
    commit = {str(partition) for partition in commit_partitions}
    expected = 5 if "group.id" in scenario.options else 4
    admin = KafkaAdminClient(bootstrap_servers=scenario.bootstrap_servers)
    try:
        listed = [
            listing.transactional_id
            for listings in admin.list_transactions(state_filters=["Ongoing"]).values()
            for listing in listings
        ]
        query_id = (scenario.checkpoint / "metadata").read_text().split('"')[3]
        ours = [name for name in listed if query_id in name]
        assert len(ours) == expected, listed
        for name, found in admin.describe_transactions(ours).items():
            request = EndTxnRequest(
                version=4,
                transactional_id=name,
                producer_id=found.producer_id,
                producer_epoch=found.producer_epoch,
                committed=name.rpartition("-")[2] in commit,
            )

            async def end(request=request, node=found.coordinator_id):
                return await admin._manager.send(request, node_id=node)

            assert admin._manager.run(end).error_code == 0
    finally:
        admin.close()
    assert_none_open(scenario.bootstrap_servers, scenario.topic)
