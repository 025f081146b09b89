"""The order in which tests are handed out."""

from __future__ import annotations

import pytest
from _pytest.nodeid import NodeId


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with whole campaigns, the longest tests: processes that share the work then end together.

    First those that run one of their own, so that only one process waits for the one that the others share.
    """
    items.sort(key=lambda item: (not _is_campaign(item), "finished" in getattr(item, "fixturenames", ())))
    for item in items:
        _keep_group(item)


def _is_campaign(item: pytest.Item) -> bool:
    return "workflow" in item.path.parts


def _keep_group(item: pytest.Item) -> None:
    """Have a test's `xdist_group` heeded: pytest-xdist 3.8 writes it to where pytest 9.2 looks no more."""
    if (written := getattr(item, "_nodeid", None)) is not None:
        item._id = NodeId.parse(written)
