"""The error a user is meant to read: one line that says what, where, and what to do."""

import errno
import os
from pathlib import Path


class UserError(Exception):
    """A wrong input or a missing precondition.

    Entry points print ``str(error)`` on one line and exit with status 2, without a traceback.
    """


_REMEDIES = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some of your quota",
    errno.EFBIG: "raise the limit of file sizes (ulimit -f)",
    errno.EROFS: "make it writable",
    errno.EIO: "look after the disk",
    errno.ESTALE: "mount it again",
    errno.ELOOP: "mend the links",
    errno.ENAMETOOLONG: "give a shorter path",
    errno.EEXIST: "move it away",
    errno.EISDIR: "move it away",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
}


def file_fault(error: BaseException) -> str | None:
    """Return in one line which file cannot be used and what to do; None for any other kind of error."""
    if not isinstance(error, OSError) or not isinstance(error.filename, str):
        return None
    if error.errno in (errno.EACCES, errno.EPERM):
        remedy = _let_in(Path(error.filename))
    elif error.errno == errno.ENOTDIR:
        remedy = _move_away(Path(error.filename))
    elif error.errno in _REMEDIES:
        remedy = _REMEDIES[error.errno]
    else:
        return None
    return f"{error.filename}: {error.strerror}: {remedy} and run again"


def _let_in(path: Path) -> str:
    """Return which mode keeps this user out: of a folder above, of the file, or of its folder."""
    for folder in reversed(path.absolute().parents):
        if not os.path.lexists(folder):
            break
        if not os.access(folder, os.X_OK):
            return f"make {folder} searchable for you (chmod +x)"
    if not os.path.lexists(path):
        there = next(p for p in path.absolute().parents if p.is_dir())
        return f"make {there} writable for you"
    for mode, word in ((os.R_OK, "readable"), (os.W_OK, "writable")):
        if not os.access(path, mode):
            return f"make it {word} for you"
    return f"make {path.parent} writable for you"


def _move_away(path: Path) -> str:
    file = next((p for p in (path, *path.absolute().parents) if p.is_file()), path)
    return f"move away the file {file}, where a folder is wanted,"
