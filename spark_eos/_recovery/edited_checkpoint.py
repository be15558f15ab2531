"""Planner worker, at a start. Does the checkpoint still say what the last batch read?

Spark goes on where the newest file in `offsets/` ends. If a person edits it, rows come twice or
never. A batch that runs again is compared when it is decided. See docs/design/ownership.md.
"""

from spark_eos._deadline import Deadline
from spark_eos._protocol.transactions.acknowledgement import Risk, acknowledgement
from spark_eos._protocol.transactions.replay import is_same_input
from spark_eos._recovery.ownership import Ownership
from spark_eos._session import Session
from spark_eos.errors import OperatorError


def check_input_as_logged(session: Session, deadline: Deadline) -> None:
    """Raise if the input of the last complete batch has changed since its decision."""
    query_id, checkpoint = session.query_id, session.checkpoint
    last = session.log.last_batch(query_id)
    if last is None or not checkpoint.has_commit(last.batch_id):
        return
    if not checkpoint.has_offsets(last.batch_id):
        return
    now = checkpoint.input_digest(last.batch_id)
    before = checkpoint.input_digest_of_version_2(last.batch_id)
    if all(is_same_input(row, now, before) for row in last.committed):
        return
    code = acknowledgement(Risk.EDITED_CHECKPOINT, query_id, last.batch_id, now)
    if not Ownership(session).accepts(code, deadline):
        raise OperatorError(
            "the file offsets/{batch_id} in checkpointLocation '{location}' was changed after batch"
            " {batch_id} of query {query_id} was committed. Going on from it would write rows twice"
            " or leave rows out, so nothing was written. Put the file back. To go on from the"
            " changed offsets all the same, set option {option} to '{code}' for one start",
            batch_id=last.batch_id,
            location=checkpoint.location,
            query_id=query_id,
            option="acknowledge",
            code=code,
        )
