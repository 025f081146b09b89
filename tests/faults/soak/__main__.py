"""Soak: kill points on cells and on whole campaigns, a table of them, and one line of figures."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
from multiprocessing.connection import Connection, wait
from pathlib import Path

from faults.soak.campaigns import CampaignSoak
from faults.soak.cells import CellSoak
from faults.soak.chain import Chain, table


def main() -> int:
    """Run the soak; return 1 where anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m faults.soak", description=__doc__)
    parser.add_argument("--cells", type=int, default=1000, help="kill points on supervisor and stages alone")
    parser.add_argument("--campaigns", type=int, default=60, help="kill points through Snakemake")
    parser.add_argument(
        "--processes", type=int, default=4, help="soaks beside each other: they wait half the time"
    )
    asked = parser.parse_args()
    seed = os.environ.get("SOAK_SEED", "1")
    began, load = time.monotonic(), os.getloadavg()[0]
    os.environ["PIVOTBENCH_TEST_PYTHON"] = sys.executable
    chains: dict[str, list[Chain]] = {}
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        for kind, points in (("campaigns", asked.campaigns), ("cells", asked.cells)):
            chains[kind] = _soak(kind, points, asked.processes, seed, Path(folder))
            print(f"\n{_kills(chains[kind])} kill points in {kind}\n\n{table(chains[kind])}", flush=True)
    faults = [chain for each in chains.values() for chain in each if chain.fault]
    minutes = (time.monotonic() - began) / 60
    print(
        f"\nsoak: seed {seed}, {_kills(chains['cells'])} kill points on supervisor and stages in "
        f"{len(chains['cells'])} cells, {_kills(chains['campaigns'])} through Snakemake in "
        f"{len(chains['campaigns'])} campaigns, {minutes:.1f} min (load {load:.1f} at the start, "
        f"{os.getloadavg()[0]:.1f} at the end, {os.cpu_count()} cores), came through: "
        f"{sum(map(len, chains.values())) - len(faults)}, did not: {len(faults)}"
    )
    return 1 if faults else 0


def _kills(chains: list[Chain]) -> int:
    return sum(len(chain.kills) for chain in chains)


def _soak(kind: str, points: int, processes: int, seed: str, folder: Path) -> list[Chain]:
    """Run chains of one kind in several processes until they make up so many kill points."""
    chains: list[Chain] = []
    ends: list[Connection] = []
    for worker in range(processes if points else 0):
        here, there = multiprocessing.Pipe(duplex=False)
        share = points // processes + (worker < points % processes)
        place = folder / f"{kind}-{worker}"
        place.mkdir()
        process = multiprocessing.get_context("fork").Process(
            target=_work, args=(kind, share, f"{seed}/{kind}/{worker}", place, there)
        )
        process.start()
        there.close()
        ends.append(here)
    said = time.monotonic()
    while ends:
        for end in wait(ends):
            assert isinstance(end, Connection)
            try:
                chain: Chain = end.recv()
            except EOFError:
                ends.remove(end)
                continue
            chains.append(chain)
            if chain.fault:
                print(f"{chain.seed}: {chain.kills}: {chain.fault}", flush=True)
        if time.monotonic() - said > 60:
            said = time.monotonic()
            print(f"{kind}: {_kills(chains)} of {points} kill points", flush=True)
    if _kills(chains) < points:
        raise SystemExit(f"soak: a process of the {kind} ended early, after {_kills(chains)} kill points")
    return chains


def _work(kind: str, points: int, seed: str, folder: Path, told: Connection) -> None:
    soak = (CellSoak if kind == "cells" else CampaignSoak)(folder, seed)
    number = 0
    while points > 0:
        number += 1
        chain = soak.chain(f"{seed}/{number}")
        points -= len(chain.kills)
        told.send(chain)


sys.exit(main())
