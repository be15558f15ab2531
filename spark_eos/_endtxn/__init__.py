"""What ends transactions: commit what is decided, abort and fence what nobody decided."""
