"""Record the scripts of samples/gallery, as they are and with their fix, and take pictures of the reports.

    python tools/gallery.py [NAME...]    # docs/images/gallery/NAME.png, and one line of figures for each

A recording from which other programs took cores is thrown away and made again. It needs chromium, and
pngquant to make the pictures small.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import headrace as hr

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = ROOT / "samples" / "gallery"
PICTURES = ROOT / "docs" / "images" / "gallery"
#: Share of the cores that others may take from a recording.
CONTENTION = 0.15
PRIORITY = ["nice", "-n", "-10"] if os.geteuid() == 0 else []
HEADRACE = [sys.executable, "-m", "headrace"]


def record(script: Path, folder: Path, *arguments: str) -> dict[str, Any]:
    """Run the script under `headrace run`; the short report of its loader."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    while True:
        shutil.rmtree(folder, ignore_errors=True)
        command = [*HEADRACE, "run", "--out", str(folder), str(script), *arguments]
        subprocess.run([*PRIORITY, *command], env=environment, check=True, capture_output=True)
        report = hr.Report.load(folder)
        taken = report.profile.host.foreign_contention_share or 0
        if taken < CONTENTION:
            return report.to_summary()
        print(f"{script.stem}: again, other programs took {taken:.0%} of the cores from it", flush=True)


def picture(run: Path, to: Path, size: str = "900,640") -> None:
    page = run / "report.html"
    subprocess.run([*HEADRACE, "report", str(run), "--format", "html", "-o", str(page)], check=True)
    to.parent.mkdir(parents=True, exist_ok=True)
    browser = ["chromium", "--headless", "--no-sandbox", "--hide-scrollbars", f"--window-size={size}"]
    command = [*browser, f"--screenshot={to}", page.resolve().as_uri()]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    if shutil.which("pngquant"):
        subprocess.run(["pngquant", "--force", "--output", str(to), "48", str(to)], check=True)


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.1f} ms"


def main(names: list[str]) -> None:
    for script in sorted(SCRIPTS.glob("*.py")):
        if names and script.stem not in names:
            continue
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            before = record(script, folder / "before")
            picture(folder / "before", PICTURES / f"{script.stem}.png")
            cause = before["verdict"].get("cause", "healthy")
            line = f"{script.stem}: {cause}, step {milliseconds(before['step']['step_s'])}"
            if '"fixed"' in script.read_text(encoding="utf-8"):
                after = record(script, folder / "after", "fixed")
                predicted = [one["predicted_step_s"] for one in before["advice"] if "predicted_step_s" in one]
                line += f" -> {milliseconds(after['step']['step_s'])}"
                line += f", predicted {', '.join(map(milliseconds, predicted)) or 'nothing'}"
                line += f"; then: {after['verdict']['says']}"
            print(line, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
