"""The place a result is written to, looked at before any work: nothing is worse than a result that cannot be kept."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def check_place(out: Path, *, force: bool, remedy: str = "--out for another place") -> Path:
    """Return a place to write to that is free, or may be replaced, and whose folder can be written to."""
    if (out.exists() or out.is_symlink()) and not force:
        raise FileExistsError(f"{out} exists already; use --force to replace it, or {remedy}.")
    above = out.absolute().parent
    while not above.exists():
        above = above.parent
    if not above.is_dir():
        raise NotADirectoryError(f"{above} is a file, not a folder; choose another place with --out.")
    try:
        # To ask is not enough: there are file systems that say yes and mean no.
        with tempfile.NamedTemporaryFile(prefix=".betacores.", dir=above):
            pass
    except OSError as error:
        reason = (error.strerror or "no permission").lower()
        raise PermissionError(
            f"{above}: it cannot be written to ({reason}); choose another place with --out."
        ) from None
    return out


def check_ours(out: Path) -> None:
    """Refuse to replace a folder that is no coreset, whatever was forced."""
    if not out.exists():
        return
    from betacores.storage import is_coreset

    if not is_coreset(out):
        raise FileExistsError(
            f"{out} is not a saved coreset and will not be replaced; choose another place with --out."
        )


def write_whole(path: Path, content: bytes) -> None:
    """Write a file, all of it or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(draft).chmod(0o644)
        Path(draft).replace(path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
