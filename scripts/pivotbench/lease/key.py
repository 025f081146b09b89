"""The key of a lease: the cell whose server it is, in which folder, and what its launch was asked for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# Stands in no JSON of one line, so whatever the folder is called, the last one parts the two.
_ASKED = "\n"


def lease_name(cell: Mapping[str, Any]) -> str:
    """Return what names a cell (as JSON) in this working folder among all leases of the machine."""
    return f"{Path.cwd()}:{cell['study']}/{cell['phase']}/{cell['configuration']}/r{cell['round']}"


def lease_key(cell: Mapping[str, Any], request: Mapping[str, Any]) -> str:
    """Return what a live server must carry to be that of this cell and this launch request."""
    return f"{lease_name(cell)}{_ASKED}{json.dumps(request, sort_keys=True)}"


def name_in(key: str) -> str:
    """Return the name of the cell that a lease's key begins with."""
    return key.rpartition(_ASKED)[0]
