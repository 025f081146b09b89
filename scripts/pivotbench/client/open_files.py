"""How many files, connections among them, this process may have open."""

from __future__ import annotations

import contextlib
import resource


def open_files(wanted: int) -> int:
    """Raise the limit to ``wanted`` as far as the hard limit lets it; return the limit, at most ``wanted``.

    The usual soft limit of 1,024 is there for programs that use select(2); see setrlimit(2).
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        goal = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        # macOS refuses more than its kernel has, whatever the hard limit says.
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (goal, hard))
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return wanted if soft == resource.RLIM_INFINITY else min(wanted, soft)
