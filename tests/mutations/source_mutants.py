"""Source: where a read may start and end, and the offsets of consumer groups."""

from tests.mutations.mutant import always, argument, assigned, instead, mutant, never, statement

TOPIC_IDS = "tests/unit/source/test_stream_topic_ids.py"
READER = "tests/unit/source/test_reader.py"

SOURCE_MUTANTS = (
    mutant(
        "a snapshot is read before its query is in the log",
        "Snapshot.cut",
        never("_query_id"),
        tests="tests/unit/source/test_snapshot.py",
    ),
    mutant(
        "a group without any offset is read from the beginning",
        "group_start.group_start",
        never("missing", "committed"),
        tests="tests/unit/source/test_group_start.py",
    ),
    mutant(
        "an offset of the group that is there is moved",
        "group_offsets.put_back",
        always("place", "there"),
        tests="tests/integration/test_group_offsets.py",
    ),
    mutant(
        "offsets in an open transaction are not waited for",
        "ConsumerGroups.committed_offsets",
        argument("_committed", 2, "'read_uncommitted'"),
        tests="tests/integration/test_group_offsets.py",
    ),
    mutant(
        "the ids of topics are not stored in the checkpoint",
        "reader._to_map",
        argument("to_map", 1, None),
        tests=READER,
    ),
    mutant(
        "a batch is run only to store the ids of topics",
        "StreamOffsets.latest",
        instead("end == start.offsets and not again", "False"),
        tests=READER,
    ),
    mutant(
        "the ids in the checkpoint are not compared",
        "StreamOffsets._replaced",
        assigned("found", "set()"),
        tests=TOPIC_IDS,
    ),
    mutant(
        "a new topic is read from where the old one was left",
        "StreamOffsets.latest",
        assigned("begin", "start.offsets"),
        tests=TOPIC_IDS,
    ),
    mutant(
        "a batch over a new topic that runs again begins at the old offset",
        "StreamOffsets.ranges",
        assigned("again", "set()"),
        tests=TOPIC_IDS,
    ),
    mutant(
        "a batch that runs again reads another topic of the same name",
        "StreamOffsets.ranges",
        assigned("gone", "set()"),
        tests=TOPIC_IDS,
    ),
    mutant(
        "a batch that runs again is not asked for the ids of its topics",
        "StreamOffsets._gone",
        never("unknown"),
        tests=TOPIC_IDS,
    ),
    mutant(
        "a frozen run ends where the old topic ended",
        "StreamOffsets._latest",
        never("replaced"),
        tests=TOPIC_IDS,
    ),
    mutant(
        "a new topic after a start without ids is read from where the old one was left",
        "StreamOffsets.latest",
        assigned("left_out", "set()"),
        tests=TOPIC_IDS,
    ),
    mutant(
        "a topic that was replaced keeps the sink from completing what is decided",
        "StreamReader.partitions",
        statement("InputPartition", "error", becomes="raise error"),
        tests=READER,
    ),
)
