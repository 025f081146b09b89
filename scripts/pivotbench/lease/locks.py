"""Exclusive use of devices by kernel flocks: freed by the kernel however their holder dies.

One lock file a device (a GPU by its UUID, or ``cpu`` for a host without GPUs), in a folder shared
by all users of the host. Beside each stands a ``.wanted`` file on which those who wait hold a
shared lock, so that the holder of an idle server can see that somebody waits.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from pivotbench.errors import UserError

FOLDER_VARIABLE = "PIVOTBENCH_LOCKS"


def lock_folder() -> Path:
    """Return the host-local folder of locks, created world-writable and sticky.

    ``$PIVOTBENCH_LOCKS`` if set (absolute), else /run/lock/pivotbench, else /tmp/pivotbench. One that is
    there is used before another is made, and never another instead of it: users who lock in different
    folders do not keep out of each other's way. Raises UserError where none can be used.
    """
    told = os.environ.get(FOLDER_VARIABLE)
    if told and not Path(told).is_absolute():
        raise UserError(f"{FOLDER_VARIABLE}={told}: must be an absolute path on a local disk")
    candidates = [Path(told)] if told else [Path("/run/lock/pivotbench"), Path("/tmp/pivotbench")]
    for folder in [c for c in candidates if c.is_dir()] or candidates:
        try:
            share(folder)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return folder
        raise UserError(f"{folder}: devices are locked here, and you may not write: chmod 1777 {folder}")
    tried = ", ".join(str(c) for c in candidates)
    raise UserError(f"no lock folder can be written (tried {tried}): set {FOLDER_VARIABLE} to a local folder")


def share(folder: Path) -> None:
    """Make a folder that every user may write to, at once: one killed half-way would shut the others out."""
    if folder.is_dir():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    before = os.umask(0)
    try:
        folder.mkdir(mode=0o1777, exist_ok=True)
    finally:
        os.umask(before)


def _open(path: Path) -> int:
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    while True:
        try:
            # Without O_CREAT first: in a sticky folder the kernel refuses O_CREAT on another user's file.
            return os.open(path, flags)
        except FileNotFoundError:
            pass
        before = os.umask(0)
        try:
            return os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:
            continue  # another made it meanwhile
        finally:
            os.umask(before)


def try_lock(path: Path, *, shared: bool = False) -> int | None:
    """Return an open descriptor holding the lock on ``path``, or None where another holds it."""
    descriptor = _open(path)
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def is_held(path: Path) -> bool:
    """Return whether somebody holds the lock on ``path``."""
    descriptor = try_lock(path)
    if descriptor is None:
        return True
    os.close(descriptor)
    return False


class DeviceLocks:
    """Locks on some of a host's devices, held until ``release`` or the death of every holder."""

    def __init__(
        self,
        candidates: Sequence[str],
        count: int,
        folder: Path | None = None,
        vacant: Callable[[str, int], bool] = lambda _device, _lock: True,
        groups: Sequence[Sequence[str]] = (),
    ) -> None:
        """Prepare to lock any ``count`` of ``candidates``; nothing is taken yet.

        ``groups``: sets of candidates of which all ``count`` must be of one; none: any will do.
        ``vacant`` is asked of each device once it is locked, with the open lock: may it be used?
        """
        self.folder = folder or lock_folder()
        self.vacant = vacant
        self.candidates = sorted(candidates)
        self.groups = [sorted(group) for group in groups] or [self.candidates]
        self.count = count
        self.held: dict[str, int] = {}
        self._wanted: list[int] = []

    def _path(self, device: str, kind: str) -> Path:
        return self.folder / f"{device}.{kind}"

    def try_acquire(self) -> bool:
        """Take ``count`` devices or none; a failure announces that we wait for them.

        All or none, in sorted order: two that want overlapping sets can never block each other.
        """
        for group in self.groups:
            if self._try_group(group):
                self._forget_wanting()
                return True
        if not self._wanted:
            for device in self.candidates:
                descriptor = try_lock(self._path(device, "wanted"), shared=True)
                if descriptor is not None:
                    self._wanted.append(descriptor)
        return False

    def _try_group(self, group: Sequence[str]) -> bool:
        taken: dict[str, int] = {}
        for device in group:
            descriptor = try_lock(self._path(device, "lock"))
            if descriptor is None:
                continue
            if not self.vacant(device, descriptor):
                os.close(descriptor)
                continue
            taken[device] = descriptor
            if len(taken) == self.count:
                break
        if len(taken) == self.count:
            self.held = taken
            return True
        for descriptor in taken.values():
            os.close(descriptor)
        return False

    def wanted_by_others(self) -> bool:
        """Return whether somebody waits for one of the devices held here."""
        for device in self.held:
            descriptor = try_lock(self._path(device, "wanted"))
            if descriptor is None:
                return True
            os.close(descriptor)
        return False

    def _forget_wanting(self) -> None:
        for descriptor in self._wanted:
            os.close(descriptor)
        self._wanted = []

    def release(self) -> None:
        """Free the devices (or stop waiting for them)."""
        self._forget_wanting()
        for descriptor in self.held.values():
            os.close(descriptor)
        self.held = {}
