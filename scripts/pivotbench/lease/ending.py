"""How a launch is ended: its container by name, where it has one, then every process of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pivotbench.lease.processes import Identity, descendants, end, marked, named, reap
from pivotbench.lease.state import LaunchOrder, marker_value
from pivotbench.machine import containers
from pivotbench.machine.containers import Container

# For docker's command to say how its container ended, once that is gone.
_CLIENT_SECONDS = 2.0
_FIRST: dict[str, Identity | None] = {}


@dataclass(frozen=True)
class Ended:
    """The steps taken, with the seconds each was given, and what is left, by name: processes, a container."""

    signals: tuple[tuple[str, float], ...]
    left: tuple[str, ...]


def launch_processes(order: LaunchOrder) -> set[Identity]:
    """Return the living processes of a launch: by their marker, and those below a container's first one.

    Docker's daemon starts that one, so nobody here is its parent; where it belongs to another user its
    environment cannot be read.
    """
    found = marked(marker_value(order.launch_id))
    first = _first_process(order)
    return found if first is None else found | {first} | descendants(first.pid)


def _first_process(order: LaunchOrder) -> Identity | None:
    """Return a container's first process; docker is asked for it until it is known, and after its end."""
    container, name = Container.from_json(order.container), containers.name_of(order.launch_id)
    if container is None:
        return None
    known = _FIRST.get(name)
    if known is None or not known.alive():
        pid = containers.main_process(container, name)
        _FIRST[name] = known = Identity.of(pid) if pid is not None else None
    return known


def end_launch(
    order: LaunchOrder,
    find: Callable[[], set[Identity]],
    *,
    grace_seconds: float,
    collect: Callable[[], None] = reap,
) -> Ended:
    """End a launch's container by stop, then kill; then what ``find`` returns by SIGTERM, then SIGKILL.

    A container that docker made only after it was first asked for is removed last.
    """
    container, name = Container.from_json(order.container), containers.name_of(order.launch_id)
    steps = containers.end(container, name, grace_seconds=grace_seconds) if container else []
    ending = end(find, grace_seconds=_CLIENT_SECONDS if steps else grace_seconds, collect=collect)
    left = [named(process) for process in ending.left]
    if container is not None:
        containers.remove(container, name)
        left += [f"container {name}"] if containers.exists(container, name) else []
    return Ended((*steps, *ending.signals), tuple(left))
