"""The error a user is meant to read: one line that says what, where, and what to do."""

import errno


class UserError(Exception):
    """A wrong input or a missing precondition.

    Entry points print ``str(error)`` on one line and exit with status 2, without a traceback.
    """


_REMEDIES = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some of your quota",
    errno.EFBIG: "raise the limit of file sizes (ulimit -f)",
    errno.EROFS: "make it writable",
    errno.EACCES: "make it writable for you",
    errno.EPERM: "make it writable for you",
    errno.EIO: "look after the disk",
}


def write_fault(error: BaseException) -> str | None:
    """Return in one line which file cannot be written and what to do; None for any other kind of error."""
    if not isinstance(error, OSError) or error.filename is None or error.errno not in _REMEDIES:
        return None
    return f"{error.filename}: {error.strerror}: {_REMEDIES[error.errno]} and run again"
