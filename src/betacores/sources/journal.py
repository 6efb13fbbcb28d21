"""Passes noted down as they go, so that a run that was killed goes on where it was.

Everything but the passes over the rows is quick, and everything is decided by the seed. So a run that is started again
does all of it again, and only the passes are read from the journal: each that is over gives what it gave, the one that
was under way goes on after the last block noted. A journal is a folder:

=====================  ===================================================================================
``journal.json``       what run it is of: rows, settings, versions
``pass-0003.state``    what the blocks of one pass gave so far, their number, and what the pass was asked
``pass-0004.f32``      numbers of rows, one after the other, of a pass that gives one for every row; with
                       ``.f32.sums``, the sums of their blocks' bytes, and ``.json``, what the pass was asked
=====================  ===================================================================================

Files are written under another name and put in place, so that there is never half of one. A ``.state`` file begins with
the sum of all its other bytes. A file that is broken all the same, or of another run, is an error and not used.
"""

from __future__ import annotations

import json
import math
import os
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

from betacores.checkpoints import ABOUT, checkpoint_folder, not_written, reason
from betacores.sources.numbers import Numbers

# Seconds between two notes of a pass that is under way.
OFTEN = 1.0
# Of the files; journals of another are refused.
FORMAT = 2


class Journal:
    """The journal of one run, in a folder.

    Parameters
    ----------
    folder
        Where it is, or is to be.
    about
        What run it is of, as JSON can hold it: a journal that says anything else is refused.
    """

    def __init__(self, folder: str | os.PathLike, about: dict[str, Any]):
        self.folder = checkpoint_folder(folder)
        self._passes = 0
        self._asked = 0
        self._noted = time.monotonic()
        self._open(json.loads(json.dumps({"format": FORMAT, **about})))

    def _open(self, about: dict[str, Any]) -> None:
        place = self.folder / ABOUT
        if not place.exists():
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                said = f"checkpoint: {self.folder} cannot be made ({reason(error)}); choose another folder."
                raise OSError(said) from None
            self._write(place, lambda file: file.write(json.dumps(about, indent=2).encode()))
            return
        try:
            found = json.loads(place.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            raise ValueError(f"checkpoint: {place} cannot be read; delete the folder to begin again.") from None
        if found == about:
            return
        known = isinstance(found, dict)
        changed = sorted(k for k in {*found, *about} if found.get(k) != about.get(k)) if known else ["everything"]
        told = ", ".join(changed)
        if known and len(changed) == 1 and not isinstance(about.get(told), (dict, list)):
            told += f" ({found.get(told)!r} there, {about.get(told)!r} now)"
        raise ValueError(
            f"checkpoint: {self.folder} is of another run, which differs in {told}; choose another folder, or delete "
            "it to begin again."
        )

    def resumed(self, arguments: tuple) -> tuple[Any, int]:
        """Return what the next pass gave so far, and the number of blocks that were done; nothing and 0 if none."""
        self._passes += 1
        self._asked = fingerprint(arguments)
        place = self._place("state")
        if not place.exists():
            return None, 0
        try:
            head, _, body = unsealed(place.read_bytes()).partition(b"\n")
            about = json.loads(head)
            parts, first = [], 0
            for kind, shape in about["parts"]:
                last = first + np.dtype(kind).itemsize * math.prod(shape)
                parts.append(np.frombuffer(body[first:last], kind).reshape(shape))
                first = last
        except (OSError, ValueError, KeyError, TypeError):
            raise self._broken(place) from None
        self._check(about["asked"], place)
        return (parts[0] if about["single"] else tuple(parts)), about["done"]

    def note(self, state: Any, done: int, blocks: int) -> None:
        """Write down what the blocks of the pass under way gave; not too often, and at its end."""
        if done < blocks and time.monotonic() - self._noted < OFTEN:
            return
        self._noted = time.monotonic()
        single = not isinstance(state, tuple)
        parts = [np.asarray(part) for part in ([state] if single else state)]
        body = b"".join(part.tobytes() for part in parts)
        about = {
            "parts": [[part.dtype.str, part.shape] for part in parts],
            "single": single,
            "done": done,
            "asked": self._asked,
        }
        content = sealed(json.dumps(about).encode() + b"\n" + body)
        self._write(self._place("state"), lambda file: file.write(content))

    def numbers(self, arguments: tuple, rows: int, block_rows: int) -> Numbers:
        """Return the file of the next pass, which gives one number for every row."""
        self._passes += 1
        place = self._place("f32")
        head = self._place("json")
        self._asked = fingerprint(arguments)
        if head.exists():
            try:
                found = json.loads(head.read_text(encoding="utf-8"))["asked"]
            except (OSError, ValueError, KeyError, TypeError):
                raise self._broken(head) from None
            self._check(found, head)
        else:
            self._write(head, lambda file: file.write(json.dumps({"asked": self._asked}).encode()))
        try:
            return Numbers(place, rows, block_rows)
        except (OSError, ValueError):
            raise self._broken(place) from None

    def _place(self, ending: str) -> Path:
        return self.folder / f"pass-{self._passes:04d}.{ending}"

    def _check(self, asked: int, place: Path) -> None:
        if asked != self._asked:
            raise ValueError(
                f"checkpoint: {place} was written for another pass than this run comes to; the machine or a package "
                "may have changed. Delete the folder to begin again."
            )

    def _broken(self, place: Path) -> ValueError:
        return ValueError(f"checkpoint: {place} is damaged; delete the folder {self.folder} to begin again.")

    @staticmethod
    def _write(place: Path, write: Callable[[Any], Any]) -> None:
        draft = place.with_name(f".{place.name}.{os.getpid()}")
        try:
            with draft.open("wb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(place)
        except OSError as error:
            raise not_written(place, error) from None


def sealed(content: bytes) -> bytes:
    """Return bytes with a line before them that holds their sum."""
    return b"%08x\n" % zlib.crc32(content) + content


def unsealed(held: bytes) -> bytes:
    """Return the bytes that were sealed; ValueError if any has changed, one of the sum's own too."""
    content = held[9:]
    if held != sealed(content):
        raise ValueError("the sum of its bytes is another")
    return content


def fingerprint(arguments: tuple) -> int:
    """Return a number that tells arguments apart: of arrays their bytes, of functions their names."""
    total = 0
    for leaf in jax.tree.leaves(arguments, is_leaf=lambda leaf: callable(leaf) and not hasattr(leaf, "tree_flatten")):
        if hasattr(leaf, "__qualname__"):
            said = f"{leaf.__module__}.{leaf.__qualname__}".encode()
        elif hasattr(leaf, "dtype") or isinstance(leaf, (int, float)):
            array = np.ascontiguousarray(leaf)
            said = str((array.dtype, array.shape)).encode() + array.tobytes()
        else:
            said = repr(leaf).encode()
        total = zlib.crc32(said, total)
    return total
