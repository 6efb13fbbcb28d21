"""A run with a checkpoint, to be killed: file, checkpoint, result, settings, seconds to rest at every block."""

import json
import sys
import time

import numpy as np

import betacores as bc
from betacores.sources import journal


def main():
    path, folder, out, settings, rest = sys.argv[1:]
    # Note down every block, so that passes are gone on with in their middle.
    journal.OFTEN = 0.0

    def on_pass(stage, rows, total):
        if stage != "check":
            sys.stdout.write(f"{stage} {rows}\n")
            sys.stdout.flush()
            time.sleep(float(rest))

    coreset = bc.summarize(path, target="y", checkpoint=folder, on_pass=on_pass, **json.loads(settings))
    np.savez(
        out,
        indices=coreset.indices,
        weights=coreset.weights,
        X=coreset.X,
        y=coreset.y,
        scores=np.asarray(coreset.scores),
    )


if __name__ == "__main__":
    main()
