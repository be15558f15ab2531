"""When all is over: what is there for good. Read with plain clients, from disks and tables."""

import time

from confluent_kafka import TopicPartition
from deltalake import DeltaTable
from kafka import KafkaAdminClient

from chaos.cluster import GROUP, GROUP_OFFSETS, INPUT, OUTPUT, PARTITIONS
from chaos.generator import POISON_ID
from chaos.group_moves import moves_in
from chaos.segments import OPEN, transactions_in
from chaos.watch import consumer, partitions_of, rows_of

READ_S = 120
UNENDED = ["Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence"]
# Less than any time-out that a seed chooses: what nothing but that has ended was left open.
SETTLE_S = 10
ASK_S = 60


def stable_ends(servers, topic):
    """{partition: last stable offset}."""
    reader = consumer(servers, "bench-ends", "read_committed")
    try:
        return {
            place.partition: reader.get_watermark_offsets(place, timeout=ASK_S)[1]
            for place in partitions_of(topic)
        }
    finally:
        reader.close()


def read_all(servers, topic):
    """Every row that a read_committed consumer sees."""
    reader = consumer(servers, "bench-final", "read_committed", **{"enable.partition.eof": True})
    try:
        reader.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
        rows, ended, deadline = [], set(), time.monotonic() + READ_S
        while len(ended) < PARTITIONS:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{topic} could not be read to its end")
            messages = reader.consume(5000, timeout=0.5)
            rows += rows_of(messages)
            ended |= {m.partition() for m in messages if m.error() is not None}
        return rows
    finally:
        reader.close()


def open_transactions(servers):
    """[transactional id, state] of what no coordinator has ended; a marker may take a moment."""
    admin = KafkaAdminClient(bootstrap_servers=servers)
    try:
        deadline = time.monotonic() + SETTLE_S
        while True:
            listed = admin.list_transactions(state_filters=UNENDED)
            found = [
                [one.transactional_id, str(getattr(one, "state", ""))]
                for listings in listed.values()
                for one in listings
                if one.transactional_id != POISON_ID
            ]
            if not found or time.monotonic() > deadline:
                return found
            time.sleep(0.5)
    finally:
        admin.close()


def on_disk(cluster, topic):
    """The transactions of a topic, from the replica that has most of each partition."""
    return [
        [partition, *stretch]
        for partition, folder in _best_replicas(cluster, topic)
        for stretch in transactions_in(folder)
    ]


def moves_on_disk(cluster):
    """[partition, offset there, input partition, offset of the group] of each move that counts."""
    return [
        [partition, *move]
        for partition, folder in _best_replicas(cluster, GROUP_OFFSETS)
        for move in moves_in(folder, GROUP, INPUT)
    ]


def _best_replicas(cluster, topic):
    for partition in cluster.partitions_on_disk(topic):
        yield partition, max(cluster.partition_folders(topic, partition), key=_how_far)


def _how_far(folder):
    """A replica may lack the last data, or only the last marker."""
    stretches = transactions_in(folder)
    ended = sum(stretch[4] != OPEN for stretch in stretches)
    return (stretches[-1][1], ended) if stretches else (-1, 0)


def decisions(location):
    """What the log table says, oldest first."""
    columns = ["batch_id", "transactional_id", "producer_id", "producer_epoch"]
    columns += ["transaction_status", "entry_timestamp"]
    rows = DeltaTable(str(location)).to_pyarrow_table(columns=columns).to_pylist()
    # By the product's own timestamps: which commit a row came with cannot be told for all of them.
    # Compaction puts the rows of many commits into one file, and the older commits' files are
    # removed. So no check goes by this order; it is for people.
    rows.sort(
        key=lambda row: (
            *(row["entry_timestamp"], row["batch_id"]),
            row["transaction_status"].startswith("Complete"),
        )
    )
    return [[row[column] for column in columns[:-1]] for row in rows]


def collect(cluster, log, history):
    """Everything that the judge needs besides what was seen on the way; returns the final rows."""
    servers = cluster.servers
    history.add("open", rows=open_transactions(servers))
    history.add("input", rows=read_all(servers, INPUT))
    final = read_all(servers, OUTPUT)
    history.add("seen", reader="final", rows=final)
    history.add("transactions", rows=on_disk(cluster, OUTPUT))
    history.add("group_transactions", rows=on_disk(cluster, GROUP_OFFSETS))
    history.add("group_moves", rows=moves_on_disk(cluster))
    history.add("decisions", rows=decisions(log))
    return final
