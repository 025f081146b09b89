"""What is run for a server in a container: the runtime's command, and the environment that command gets."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pivotbench.engines.base import Command
from pivotbench.lease.processes import MARKER
from pivotbench.lease.slot import Slot
from pivotbench.lease.state import LaunchOrder, marker_value
from pivotbench.machine import containers
from pivotbench.machine.containers import Container
from pivotbench.machine.mounts import Mount, mounts_for, prepare


@dataclass(frozen=True)
class Contained:
    """``argv`` is run in ``environment``; ``shown`` is the command to paste, without its name."""

    argv: list[str]
    environment: dict[str, str]
    shown: list[str]


def contained(
    order: LaunchOrder,
    container: Container,
    command: Command,
    slot: Slot,
    devices: Mapping[str, str],
    uuids: Sequence[str],
) -> Contained:
    """Return how a launch is run in its container, on the GPUs of these UUIDs.

    ``devices``: the variables that show a process of this machine those GPUs alone. Docker shows a server no
    others; under apptainer it sees all and is told by them which to use.
    """
    mounts = mounts_for(container.runtime, order.model, order.flags, order.env)
    caches = [Mount(Path(folder), read_only=False) for folder in sorted(slot.variables.values())]
    prepare(mounts)
    secrets = {name: os.environ[name] for name in order.secrets if name in os.environ}
    variables = {
        **command.env,
        **secrets,
        **slot.variables,
        **order.env,
        MARKER: marker_value(order.launch_id),
    }
    told = variables if container.runtime == "docker" else {**variables, **devices}
    inside = containers.variables(container, told)
    gpus: Literal["all"] | tuple[()] = "all" if uuids else ()
    name = containers.name_of(order.launch_id)
    return Contained(
        argv=containers.run_command(
            container,
            command.argv,
            mounts=[*mounts, *caches],
            gpus=uuids,
            inside=inside,
            name=name,
            binding=slot.binding,
        ),
        environment=containers.client_environment(container, inside),
        shown=containers.run_command(
            container,
            command.study,
            mounts=mounts,
            gpus=gpus,
            inside={name: inside[name] for name in containers.places(container, order.env)},
        ),
    )
