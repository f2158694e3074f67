"""What the bench tells people in a line, without a traceback."""


class BenchError(Exception):
    """The command, a file or the host is not as it must be; the message says which, and what is allowed."""
