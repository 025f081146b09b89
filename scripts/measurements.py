"""Put every sample of the evidence into one table, and the machines it was taken on beside it."""

from pivotbench.command import results_command, run
from pivotbench.decision.environments import aggregate
from pivotbench.evidence import MEASURED, read_cells
from pivotbench.files import write_json
from pivotbench.measurements import collect, write
from pivotbench.rounds import stored_rounds


def main() -> None:
    campaign, output = results_command(__doc__)
    cells = read_cells((cell.folder for cell in stored_rounds(campaign).evidence()), stages=MEASURED)
    write(collect(cells), output / "measurements.parquet", output / "measurements.csv")
    write_json(output / "environment.json", aggregate(cells))


run(main)
