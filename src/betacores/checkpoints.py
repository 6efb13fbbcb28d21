"""The folder of a checkpoint, looked at before any work: named, free or of a checkpoint, and to be written to."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

# What tells a checkpoint's folder from any other.
ABOUT = "journal.json"


def checkpoint_folder(place: Any, name: str = "checkpoint") -> Path:
    """Return the folder that a checkpoint is in, or is to be in; nothing is written.

    Parameters
    ----------
    place
        What was handed in.
    name
        What the argument is called where it was handed in.
    """
    said = os.fspath(place) if isinstance(place, (str, os.PathLike)) else None
    if not isinstance(said, str):
        raise TypeError(f"{name}: expected the name of a folder, got {place!r}; name one, such as 'notes'.")
    if not said.strip():
        raise ValueError(f"{name}: expected the name of a folder, got {said!r}; name one, such as 'notes'.")
    folder = Path(said)
    try:
        foreign = _foreign(folder)
    except (OSError, ValueError) as error:
        raise OSError(f"{name}: {folder} cannot be used ({reason(error)}); choose another folder.") from None
    if foreign is not None:
        raise FileExistsError(f"{name}: {folder} holds other files ({foreign}); name a new or empty folder.")
    if os.path.lexists(folder) and not folder.is_dir():
        what = "a file" if folder.is_file() else "no folder"
        raise FileExistsError(f"{name}: {folder} is {what}; name a folder.")
    above = folder.absolute()
    while not os.path.lexists(above):
        above = above.parent
    if not above.is_dir():
        raise NotADirectoryError(f"{name}: {folder} cannot be made, since {above} is no folder; choose another place.")
    try:
        # To ask is not enough: there are file systems that say yes and mean no.
        with tempfile.TemporaryFile(prefix=f".{ABOUT}.", dir=above):
            pass
    except OSError as error:
        raise OSError(f"{name}: {above} cannot be written to ({reason(error)}); choose another folder.") from None
    return folder


def reason(error: Exception) -> str:
    """Return in a few words why the system refused."""
    return (error.strerror or "no reason given").lower() if isinstance(error, OSError) else str(error)


def not_written(place: Path, error: OSError) -> OSError:
    """Return what to say where a file of a checkpoint cannot be written."""
    return OSError(
        f"checkpoint: {place} cannot be written ({reason(error)}); make room or get permission and run again, "
        "which goes on from what is noted, or choose another folder."
    )


def _foreign(folder: Path) -> str | None:
    """Return a file in a folder that is no checkpoint's, if there is one."""
    try:
        folder.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not folder.is_dir() or (folder / ABOUT).exists():
        return None
    # A run that was killed as it began leaves a draft of what it is of.
    return next((one.name for one in folder.iterdir() if not one.name.startswith(f".{ABOUT}")), None)
