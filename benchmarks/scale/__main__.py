"""What hundreds of configurations cost the workflow itself: `make bench-scale`.

Ends with one line of figures; exits 1 where a target is missed. README.md beside this file says more.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.scale.campaign import Size, record, write_campaign
from benchmarks.scale.overhead import overheads
from benchmarks.scale.spent import Spent, spent, together
from benchmarks.scale.targets import DECISION_CELLS, misses

from workflow.campaign import ROOT, Folder, Run

SIZES = (10, 100, 1000, DECISION_CELLS, 5000)
DECISION = ("measurements", "decide", "charts", "report")
ROWS = ("dry run", "no-op", "one changed", "one stage", *DECISION, "decision and report")


def main() -> int:
    """Run everything, print the table, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, nargs="+", default=SIZES, help="sizes of campaigns to measure")
    parser.add_argument("--in", dest="folder", type=Path, help="where to write them; 2 GB for all sizes")
    asked = parser.parse_args()
    print(f"load of the machine before: {_load()}")
    table: dict[int, dict[str, Spent]] = {}
    with tempfile.TemporaryDirectory(prefix="pivotbench-scale-", dir=asked.folder) as root:
        stages = overheads(Path(root) / "overhead")
        for cells in asked.cells:
            print(f"{cells:,} cells", file=sys.stderr)
            table[cells] = _measure(Path(root) / str(cells), Size.of(cells))
    print(f"load of the machine after: {_load()}\n\n{_table(table)}\n")
    print("overhead of a stage over its server's own time: ", end="")
    print(", ".join(f"{stage} {cost.wall_seconds:.2f} s" for stage, cost in stages.items()))
    print("its command's processor time, its client's load included: ", end="")
    print(", ".join(f"{stage} {cost.cpu_seconds:.2f} s" for stage, cost in stages.items()))
    print("the same as a job of Snakemake: ", end="")
    print(", ".join(f"{stage} {cost.job_wall_seconds:.2f} s" for stage, cost in stages.items()), end="\n\n")
    missed = misses(_row(table, "no-op"), _row(table, "decision and report"), stages)
    print("\n".join(f"missed: {line}" for line in missed) if missed else "every target is met")
    print(_line(table, max(cost.wall_seconds for cost in stages.values()), len(missed)))
    return 1 if missed else 0


def _measure(path: Path, size: Size) -> dict[str, Spent]:
    folder = write_campaign(path, size)
    parts = {name: spent(command, path, folder.environment()) for name, command in _decision(folder)}
    record(folder)
    last = sorted(p.name for p in (folder.results / "backends").iterdir())[-1]
    found = {
        "dry run": _idle(folder, "all", "--dry-run"),
        "no-op": _idle(folder, "all"),
        "one stage": _idle(folder, f"results/small/backends/{last}/r1/throughput.json"),
    }
    study = folder.study()
    study["backends"]["matrix"]["mem-fraction-static"][-1] = 0.95
    folder.write(study)
    found["one changed"] = spent(folder.command("all", "--dry-run"), path, folder.environment())
    planned = Run(0, found["one changed"].text).planned
    if planned["launch"] != 1:
        raise RuntimeError(f"one configuration changed, planned are {dict(planned)}")
    return {**found, **parts, "decision and report": together(parts.values())}


def _idle(folder: Folder, *arguments: str) -> Spent:
    done = spent(folder.command(*arguments), folder.path, folder.environment())
    if "Nothing to be done" not in done.text:
        raise RuntimeError(f"everything is there, yet Snakemake finds work:\n{done.text}")
    return done


def _decision(folder: Folder) -> list[tuple[str, list[str]]]:
    results = str(folder.results.relative_to(folder.path))
    study = ["--study", "study.yaml", "--output", results]
    return [
        (name, [sys.executable, str(ROOT / "scripts" / script), *arguments])
        for name, script, arguments in (
            ("measurements", "measurements.py", study),
            ("decide", "decide.py", study),
            ("charts", "chart.py", ["--results", results, "--output", f"{results}/charts"]),
            ("report", "report.py", ["--results", results, "--output", f"{results}/report.html"]),
        )
    ]


def _row(table: dict[int, dict[str, Spent]], row: str) -> dict[int, Spent]:
    return {cells: found[row] for cells, found in table.items()}


def _table(table: dict[int, dict[str, Spent]]) -> str:
    heads = ["wall s / processor s / peak MiB", *(f"{cells:,} cells" for cells in table)]
    lines = [_cells(heads), "|---" * len(heads) + "|"]
    lines += [_cells([row, *(_figures(found[row]) for found in table.values())]) for row in ROWS]
    return "\n".join(lines)


def _cells(texts: Sequence[str]) -> str:
    return f"| {' | '.join(texts)} |"


def _figures(cost: Spent) -> str:
    return f"{cost.wall_seconds:.1f} / {cost.cpu_seconds:.1f} / {cost.peak_mib:.0f}"


def _load() -> str:
    return ", ".join(f"{value:.1f}" for value in os.getloadavg()) + f" on {os.cpu_count()} cores"


def _line(table: dict[int, dict[str, Spent]], overhead: float, missed: int) -> str:
    no_ops = [f"{cells:,} cells {cost.wall_seconds:.1f} s" for cells, cost in _row(table, "no-op").items()]
    decided = max(table)
    if DECISION_CELLS in table:
        decided = DECISION_CELLS
    whole = table[decided]["decision and report"].wall_seconds
    peak = max(cost.peak_mib for found in table.values() for cost in found.values())
    return (
        f"scale: no-op at {', '.join(no_ops)}; decision and report for {decided:,} cells {whole:.1f} s; "
        f"overhead of a stage at most {overhead:.2f} s; peak {peak:.0f} MiB; targets missed: {missed}"
    )


if __name__ == "__main__":
    sys.exit(main())
