"""End every server of ours on this machine that no stage is using."""

from pivotbench.command import run
from pivotbench.lease.ensure import stop
from pivotbench.lease.sweep import sweep_stale


def main() -> None:
    ended = stop() + sweep_stale()
    print(f"ended: {', '.join(ended)}" if ended else "no server of ours is running")


run(main)
