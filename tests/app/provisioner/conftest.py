from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.kubernetes_cluster import Cluster
from tests.support.provisioners import cluster_with_our_role

from deerflow.config.paths import Paths


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    """DeerFlow's data directory, which is a volume of the cluster."""
    return Paths(tmp_path / "data", environ={})


@pytest.fixture
def cluster(paths: Paths, tmp_path: Path) -> Iterator[Cluster]:
    with cluster_with_our_role(paths.base_dir, tmp_path) as double:
        yield double
