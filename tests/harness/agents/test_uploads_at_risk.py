"""Which commands destroy what the person uploaded."""

from __future__ import annotations

import pytest

from deerflow.features.guardrails.uploads_at_risk import destroys_uploads

UPLOADS = "/mnt/user-data/uploads"


@pytest.mark.parametrize(
    "command",
    [
        f"rm -rf {UPLOADS}/*",
        f"rm {UPLOADS}/a.pdf",
        f"cd {UPLOADS} && rm *",
        f"cd {UPLOADS}; rm a.pdf",
        "rm -rf ../uploads",
        "rm -rf /mnt/user-data",
        "rm -rf /",
        "rm -rf /*",
        f"sudo rm -f '{UPLOADS}/a b.pdf'",
        f"find {UPLOADS} -name '*.csv' -delete",
        f"find {UPLOADS} -type f -exec rm {{}} +",
        f"ls {UPLOADS}/*.csv | xargs rm",
        f"mv {UPLOADS}/a.csv /tmp/",
        f"echo x > {UPLOADS}/a.csv",
        f"true\ntruncate -s 0 {UPLOADS}/a.csv",
        f"X=1 shred {UPLOADS}/a.csv",
        f"if true; then rm {UPLOADS}/a; fi",
        f"echo 'open; rm {UPLOADS}/a",
    ],
)
def test_what_loses_an_upload_is_seen(command: str) -> None:
    assert destroys_uploads(command)


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf ~/*",
        "rm -rf build /tmp/x *",
        f"cp {UPLOADS}/a.csv . && rm b.csv",
        f"grep rm {UPLOADS}/log.txt",
        f"cat {UPLOADS}/a.csv > a.csv",
        f"python3 clean.py {UPLOADS}/a.csv",
        f"cd {UPLOADS} && ls; cd /mnt/user-data/workspace && rm old.txt",
        f"ls {UPLOADS} 2>/dev/null",
        "cat s.sh | bash",
        "",
    ],
)
def test_other_work_is_free(command: str) -> None:
    assert not destroys_uploads(command)
