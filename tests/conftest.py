"""The order in which tests are handed out."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with whole campaigns, the longest tests: processes that share the work then end together."""
    items.sort(key=lambda item: "workflow" not in item.path.parts)
