"""Say what changed between two folders of results; with --gate, fail where the change may not pass."""

import argparse
import sys
from pathlib import Path

from pivotbench.changes.compare import compare_folders
from pivotbench.changes.folder import read_pair
from pivotbench.changes.page import write_page
from pivotbench.changes.summary import summary_markdown, terminal_summary
from pivotbench.command import run
from pivotbench.files import write_json, write_text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--old", default="", help="folder of results, as it was")
    parser.add_argument("--new", default="", help="folder of results, as it is now")
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--gate", action="store_true")
    asked = parser.parse_args()
    old, new = read_pair(asked.old, asked.new)
    folder = asked.results / "compare" / f"{old.path.resolve().name}--{new.path.resolve().name}"
    comparison = compare_folders(old, new)
    write_text(folder / "summary.md", summary_markdown(comparison))
    write_json(folder / "compare.json", comparison)
    write_page(folder / "report.html", comparison)
    print(f"{terminal_summary(comparison)}  written     {folder}/: report.html, summary.md, compare.json")
    if asked.gate and not comparison["gate"]["passed"]:
        sys.stdout.flush()
        for reason in comparison["gate"]["reasons"]:
            print(f"gate: {reason}", file=sys.stderr)
        sys.exit(1)


run(main)
