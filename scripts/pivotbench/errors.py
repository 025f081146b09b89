"""The error a user is meant to read: one line that says what, where, and what to do."""


class UserError(Exception):
    """A wrong input or a missing precondition.

    Entry points print ``str(error)`` on one line and exit with status 2, without a traceback.
    """
