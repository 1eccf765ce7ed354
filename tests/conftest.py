"""Fixtures of several rooms."""

import pytest

from geomctrl import models


@pytest.fixture(scope="module", params=models.names())
def bundled(request):
    """Each robot of geomctrl.models."""
    return models.load(request.param)


@pytest.fixture(scope="session")
def panda():
    return models.panda()
