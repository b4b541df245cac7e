"""Asks pip-audit for known vulnerabilities of the packages in constraints.txt.

Fails when there is one. Says so, and succeeds, when the data cannot be had: a network
that is down must not look like a broken change.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

REQUIREMENTS = Path(__file__).parents[1] / "constraints.txt"
SECONDS = 120


def main() -> int:
    command = [sys.executable, "-m", "pip_audit", "--requirement", str(REQUIREMENTS)]
    command += ["--no-deps", "--disable-pip", "--format", "json", "--timeout", "10"]
    command += ["--progress-spinner", "off"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return skipped(f"the service did not answer within {SECONDS} seconds")
    if not done.stdout.strip():
        *_, reason = done.stderr.strip().splitlines() or ["no output"]
        # pip-audit lets a few errors of the network through as tracebacks.
        if reason.startswith(("requests.exceptions.", "urllib3.exceptions.")):
            kind = reason.partition(":")[0]
            return skipped(f"the service cannot be reached ({kind})")
        if "Traceback" in done.stderr or done.returncode != 1:
            print(done.stderr, file=sys.stderr)
            return 1
        return skipped(f"pip-audit could not ask the service ({reason})")
    packages = json.loads(done.stdout)["dependencies"]
    unknown = [package["name"] for package in packages if "skip_reason" in package]
    if len(unknown) == len(packages):
        return skipped(
            f"the service answered, and has no data on any of the {len(packages)} "
            "packages, as a mirror without such data does"
        )
    found = [package for package in packages if package.get("vulns")]
    for package in found:
        for vulnerability in package["vulns"]:
            fixed = ", ".join(vulnerability["fix_versions"]) or "no version yet"
            print(
                f"{package['name']} {package['version']}: {vulnerability['id']}, "
                f"fixed in {fixed}"
            )
    if unknown:
        print(f"audit: no data for {', '.join(unknown)}")
    print(f"audit: {len(found)} of {len(packages)} packages are known to be vulnerable")
    return 1 if found else 0


def skipped(reason: str) -> int:
    print(f"audit: SKIPPED, no package was checked: {reason}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
