"""Pack a valid skill as a .skill archive that can be installed."""

from __future__ import annotations

import argparse
import sys
import zipfile
from pathlib import Path

from validate import check

LEFT_OUT = {"__pycache__", ".git", ".DS_Store", "evals", "node_modules"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("-o", "--output", type=Path, help="a directory; without it, the present one")
    options = parser.parse_args()
    folder = options.folder.resolve()
    wrong, _ = check(folder)
    for line in wrong:
        print(f"- {line}")
    if wrong:
        return 1
    target = (options.output or Path()) / f"{folder.name}.skill"
    target.parent.mkdir(parents=True, exist_ok=True)
    files = [
        file
        for file in sorted(folder.rglob("*"))
        if file.is_file() and not LEFT_OUT & set(file.relative_to(folder).parts)
    ]
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            entry = zipfile.ZipInfo(f"{folder.name}/{file.relative_to(folder).as_posix()}", (2020, 1, 1, 0, 0, 0))
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o100644 << 16
            archive.writestr(entry, file.read_bytes())
    print(f"{target}: {len(files)} files, {target.stat().st_size / 1024:.0f} kB")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
