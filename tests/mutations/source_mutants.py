"""Source: where a read may start and end, and the offsets of consumer groups."""

from tests.mutations.mutant import mutant

TOPIC_IDS = "tests/unit/source/test_stream_topic_ids.py"

SOURCE_MUTANTS = (
    mutant(
        "a snapshot is read before its query is in the log",
        "source/snapshot.py",
        "return None if self._query_id is None else whole_batches(",
        "return whole_batches(",
        tests="tests/unit/source/test_snapshot.py",
    ),
    mutant(
        "a group without any offset is read from the beginning",
        "source/group_start.py",
        "    if missing and not committed:\n",
        "    if False:\n",
        tests="tests/unit/source/test_group_start.py",
    ),
    mutant(
        "an offset of the group that is there is moved",
        "recovery/group_offsets.py",
        " if place not in there}",
        "}",
        tests="tests/integration/test_group_offsets.py",
    ),
    mutant(
        "offsets in an open transaction are not waited for",
        "kafka/admin/group.py",
        'group_id, partitions, "read_committed", deadline)',
        'group_id, partitions, "read_uncommitted", deadline)',
        tests="tests/integration/test_group_offsets.py",
    ),
    mutant(
        "the ids of topics are not stored in the checkpoint",
        "source/reader.py",
        "to_map(found.offsets, found.topic_ids)",
        "to_map(found.offsets)",
        tests="tests/unit/source/test_reader.py",
    ),
    mutant(
        "a batch is run only to store the ids of topics",
        "source/stream_offsets.py",
        "if end is None or (end == start.offsets and not again):",
        "if end is None:",
        tests="tests/unit/source/test_reader.py",
    ),
    mutant(
        "the ids in the checkpoint are not compared",
        "source/stream_offsets.py",
        "found = replaced(known.topic_ids, ids)",
        "found: set[str] = set()",
        tests=TOPIC_IDS,
    ),
    mutant(
        "a new topic is read from where the old one was left",
        "source/stream_offsets.py",
        "begin = self._restart(start.offsets, again, partitions)",
        "begin = start.offsets",
        tests=TOPIC_IDS,
    ),
    mutant(
        "a batch over a new topic that runs again begins at the old offset",
        "source/stream_offsets.py",
        "again = replaced(start.topic_ids, end.topic_ids) - gone",
        "again: set[str] = set()",
        tests=TOPIC_IDS,
    ),
    mutant(
        "a batch that runs again reads another topic of the same name",
        "source/stream_offsets.py",
        "gone = self._gone(start, end)",
        "gone: set[str] = set()",
        tests=TOPIC_IDS,
    ),
    mutant(
        "a batch that runs again is not asked for the ids of its topics",
        "source/stream_offsets.py",
        "        if unknown:\n",
        "        if False:\n",
        tests=TOPIC_IDS,
    ),
    mutant(
        "a frozen run ends where the old topic ended",
        "source/stream_offsets.py",
        " or replaced(self._target.topic_ids, ids):",
        ":",
        tests=TOPIC_IDS,
    ),
    mutant(
        "a new topic after a start without ids is read from where the old one was left",
        "source/stream_offsets.py",
        "left_out = again - start.topic_ids.keys()",
        "left_out: set[str] = set()",
        tests=TOPIC_IDS,
    ),
    mutant(
        "a topic that was replaced keeps the sink from completing what is decided",
        "source/reader.py",
        "            return [InputPartition(error)]\n",
        "            raise error\n",
        tests="tests/unit/source/test_reader.py",
    ),
)
