"""The order in which tests are handed out."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with whole campaigns, the longest tests: processes that share the work then end together.

    First those that run one of their own, so that only one process waits for the one that the others share.
    """
    items.sort(key=lambda item: (not _is_campaign(item), "finished" in getattr(item, "fixturenames", ())))


def _is_campaign(item: pytest.Item) -> bool:
    return "workflow" in item.path.parts
