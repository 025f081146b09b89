"""Watch over one server: supervise.py FOLDER (started by the stages, never by hand)."""

import sys
from pathlib import Path

from pivotbench.lease.supervisor import supervise

supervise(Path(sys.argv[1]))
