"""Looks the pinned dependencies up in the database of known vulnerabilities, with pip-audit.

python runs/audit.py PIP_AUDIT

Exit status: 1 if a pinned version has a known vulnerability, else 0. Where the database cannot be reached, or knows
none of the packages, as behind a mirror of the package index, nothing was looked up: one sentence says so, with status
0.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

CONSTRAINTS = Path(__file__).parents[1] / "constraints.txt"


def main(pip_audit: str) -> int:
    """Print what was found; returns the exit status."""
    command = [pip_audit, "--requirement", str(CONSTRAINTS), "--no-deps", "--disable-pip"]
    done = subprocess.run(
        [*command, "--progress-spinner", "off", "--format", "json"],
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        packages = json.loads(done.stdout)["dependencies"]
    except ValueError:
        reason = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
        print(f"Nothing was looked up: pip-audit did not get through to its database ({reason[:300]}).")
        return 0
    known = [package for package in packages if "vulns" in package]
    if not known:
        print(
            "Nothing was looked up: the database that pip-audit reaches from here knows none of the packages."
        )
        return 0
    found = [(package, vulnerability) for package in known for vulnerability in package["vulns"]]
    for package, vulnerability in found:
        fixed = ", ".join(vulnerability["fix_versions"]) or "no version"
        print(f"{package['name']} {package['version']}: {vulnerability['id']}, fixed in {fixed}")
    print(f"{len(known)} of {len(packages)} pinned packages looked up: {len(found)} known vulnerabilities.")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
