"""What a command says of a coreset: for people, and in JSON for machines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from betacores.coreset import Coreset

MOST_GROUPS = 25


def for_people(coreset: Coreset, out: Path) -> str:
    """Return what was found, and where it was written."""
    parts = [str(coreset)]
    if coreset.grouping is not None:
        parts.append(_group_lines(coreset))
    names = sorted(one.name for one in out.iterdir())
    parts.append(f"Written to {out}: {', '.join(names)}")
    if "report.html" in names:
        parts[-1] += f"\nOpen {out / 'report.html'}"
    return "\n\n".join(parts)


def for_machines(coreset: Coreset, out: Path, **more: Any) -> str:
    """Return the same in JSON."""
    low, high = coreset.contamination_interval
    estimate = coreset.info.kl_estimate
    said: dict[str, Any] = {
        "out": str(out),
        "files": sorted(one.name for one in out.iterdir()),
        "rows": coreset.row_count,
        "kept": len(coreset),
        "method": coreset.method,
        "model": coreset.model.name,
        "beta": coreset.beta,
        "contamination": coreset.contamination,
        "contamination_interval": [low, high],
        "kl_estimate": None if estimate is None else estimate.value,
        "notes": coreset.info.notes,
        "warnings": coreset.info.warnings,
        **more,
    }
    if coreset.grouping is not None:
        said["groups"] = [{**row, "group": _plain(row["group"])} for row in coreset.group_records()]
    return json.dumps(said, indent=2, default=str)


def _group_lines(coreset: Coreset) -> str:
    rows = coreset.group_records()
    shown = rows[:MOST_GROUPS]
    labels = [str(row["group"]) for row in shown]
    width = max(len("group"), *map(len, labels))
    lines = [f"{'group':<{width}}  rank  weight    rows  score  contamination"]
    for label, row in zip(labels, shown, strict=True):
        rank = "-" if row["rank"] is None else str(row["rank"])
        dirt = f"{row['contamination']:.2f} [{row['low']:.2f}, {row['high']:.2f}]"
        lines.append(
            f"{label:<{width}}  {rank:>4}  {row['weight']:>6.2f}  {row['rows']:>6,}  {row['score']:>5.2f}  {dirt}"
        )
    if len(rows) > len(shown):
        lines.append(f"... and {len(rows) - len(shown)} more groups")
    return "\n".join(lines)


def _plain(label: Any) -> Any:
    return list(label) if isinstance(label, tuple) else label
