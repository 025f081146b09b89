"""Watch over one supervisor: guard.py FOLDER SUPERVISOR (started by the supervisor alone)."""

import sys
from pathlib import Path

from pivotbench.lease.guard import guard
from pivotbench.lease.processes import Identity

guard(Path(sys.argv[1]), Identity.parse(sys.argv[2]))
