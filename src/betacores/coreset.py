"""The result: a few rows with weights, a score for every row, and how they came about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from betacores.checks import check_choice, check_number, check_seed
from betacores.constructions.path import Path
from betacores.divergence import as_beta
from betacores.group_table import Grouped
from betacores.groups import Groups
from betacores.info import Info
from betacores.models import Model
from betacores.origin import Origin
from betacores.posteriors import has_conjugate
from betacores.posteriors.result import Given, Posterior

if TYPE_CHECKING:
    import arviz
    import pandas
    from jaxtyping import Float, Int

    from betacores.report import Report

Sampler = Literal["exact", "laplace", "nuts"]
Likelihood = Literal["classical", "beta"]


@dataclass(frozen=True, eq=False, repr=False)
class Coreset(Grouped):
    """A weighted, cleansed summary of a table.

    Attributes
    ----------
    indices, weights
        Numbers of the chosen rows in the input, and their weights, all positive.
    X, y
        The rows themselves, as given; ``y`` is None for models without response. With ``method="psvi"`` they are points
        that have moved away from rows, and ``indices`` the rows they started from.
    scores
        For every input row how much the model believes it: about 1 for clean rows, near 0 for outliers.
    covariate_scores
        For every input row how much its covariates are trusted, between 0 and 1; None without a guard.
    contamination
        Estimated share of rows that do not come from the model.
    contamination_interval
        Interval that holds it with probability 95 %, if the model is right for the clean rows.
    model, method, beta
        What was used.
    info
        Settings, timings, trace and warnings.
    columns, labels, row_count
        Names of the columns, the label values if the response is of labels, and the number of rows summarised.
    path
        Rows in order of insertion and their weights after every outer iteration; see `at`.
    grouping
        Which group every input row belongs to, if groups were given; see `groups` and `group_table`.
    origin
        The table itself, for reports; None if the coreset was read from disk.
    """

    indices: Int[np.ndarray, " m"]
    weights: Float[np.ndarray, " m"]
    X: np.ndarray
    y: np.ndarray | None
    scores: Float[np.ndarray, " rows"]
    covariate_scores: Float[np.ndarray, " rows"] | None
    contamination: float
    model: Model
    method: str
    beta: float
    info: Info
    columns: list[str]
    labels: np.ndarray | None
    path: Path
    path_X: np.ndarray
    path_y: np.ndarray | None
    grouping: Groups | None = None
    origin: Origin | None = None
    contamination_interval: tuple[float, float] = (0.0, 1.0)

    @property
    def row_count(self) -> int:
        """Number of rows summarised."""
        return len(self.scores)

    def __len__(self) -> int:
        """Return the number of chosen rows."""
        return len(self.indices)

    def at(self, iteration: int) -> Coreset:
        """Return the coreset as it was after an outer iteration: one run gives every size."""
        check_number("iteration", iteration, at_least=1, below=len(self.path.weights) + 1, whole=True)
        weights = self.path.weights[iteration - 1]
        kept = weights > 0
        y = None if self.path_y is None else self.path_y[kept]
        indices, rows = self.path.indices[kept], self.path_X[kept]
        return replace(self, indices=indices, weights=weights[kept], X=rows, y=y)

    def update(
        self,
        data: Any,
        y: Any = None,
        *,
        target: str | None = None,
        size: int | Literal["auto"] | None = None,
        spread: float | Literal["auto"] = "auto",
        keep_scores: bool = True,
        tolerance: float | None = None,
        progress: Callable[[int, int], None] | None = None,
        **settings: Any,
    ) -> Coreset:
        """Return the coreset of all rows that this one stands for and new ones, as of a stream.

        The new rows are summarised as the earlier ones were, with the next seed, and both are merged, see
        `betacores.merge`. New rows that contradict all that came before are set aside, with a warning, unless they
        are more than ten times as many. The noise of a linear regression is estimated anew if it was estimated before
        and the new rows are at least ten a parameter. Few rows, even a single one, are weighed by what is known if
        they cannot be summarised by themselves; where there are none the coreset comes back as it is.

        Parameters
        ----------
        data, y, target
            The new rows and their response, as of `betacores.summarize`: a table or where one is. Columns that have
            names are found by them.
        size
            The largest number of rows to keep; by default as was asked for before.
        spread, keep_scores, tolerance, progress
            As of `betacores.merge`; the tolerance is that of the new rows' summary too. With ``keep_scores=False`` a
            stream takes no more memory however long it is.
        **settings
            Other settings than before for the summary of the new rows; for files also ``columns`` and ``filter``.
        """
        from betacores.merging import update

        return update(
            self,
            data,
            y,
            target=target,
            size=size,
            spread=spread,
            keep_scores=keep_scores,
            tolerance=tolerance,
            progress=progress,
            **settings,
        )

    def posterior(
        self,
        draws: int = 1000,
        sampler: Sampler | None = None,
        *,
        likelihood: Likelihood | None = None,
        chains: int = 4,
        warmup: int = 500,
        seed: int = 0,
    ) -> Posterior:
        """Draw from the posterior of the parameters given the coreset.

        Parameters
        ----------
        draws
            Number of draws; for NUTS, of each chain.
        sampler
            ``"exact"`` (closed form), ``"laplace"`` (Gaussian at the mode) or ``"nuts"`` (BlackJAX). By default the
            closed form where there is one, else Laplace.
        likelihood
            Whether the rows are read with the ordinary likelihood (``"classical"``) or with the β-likelihood
            (``"beta"``); by default the one the coreset was built for.
        chains, warmup
            For NUTS: number of chains, and steps of adaptation.
        seed
            Same seed, same draws.
        """
        check_number("draws", draws, at_least=1, whole=True)
        check_number("chains", chains, at_least=1, whole=True)
        check_number("warmup", warmup, at_least=1, whole=True)
        check_seed(seed)
        likelihood = likelihood or self.readout
        check_choice("likelihood", likelihood, ("classical", "beta"))
        beta = self.beta if likelihood == "beta" else 0.0
        closed = has_conjugate(self.model) and beta == 0
        chosen = check_choice("sampler", sampler or ("exact" if closed else "laplace"), ("exact", "laplace", "nuts"))
        if chosen == "exact" and not closed:
            raise ValueError(
                f"sampler: the {likelihood} posterior of {self.model.name!r} has no closed form; "
                "use 'laplace' or 'nuts'."
            )
        from betacores.posteriors.readout import Asked, read_out

        asked = Asked(chosen, draws, chains, warmup, seed)
        paths, diagnostics = read_out(self.model, self.X, self.y, self.labels, self.weights, as_beta(beta), asked)
        return Posterior(paths, self.parameter_names, chosen, beta, diagnostics, self._given())

    def _given(self) -> Given:
        rows = (self.indices, self.weights, self.X, self.y, self.labels, self.columns)
        return Given(*rows, model=self.model.name, method=self.method, beta=self.beta)

    @property
    def readout(self) -> Likelihood:
        """The likelihood the coreset was built to be read with."""
        return self.info.settings.get("readout", "classical")

    @property
    def parameter_names(self) -> list[str]:
        """Names of the model's parameters."""
        if hasattr(self.model, "parameter_names"):
            return self.model.parameter_names(self.columns)
        return [f"theta{i}" for i in range(self.model.parameter_count(len(self.columns)))]

    def to_frame(self, *, original: bool = False) -> pandas.DataFrame:
        """Return the rows with their weights as a pandas DataFrame, indexed by their numbers in the input.

        After the columns of the model come ``weight`` and, if there is a response, ``y``; a name that is taken gets an
        underscore.

        Parameters
        ----------
        original
            Take the rows as the table was handed in, with words, missing cells and columns that were left out; then
            come the response, if the table does not hold it, and ``weight``.
        """
        from betacores.export.frame import frame_of_rows, original_frame

        return original_frame(self) if original else frame_of_rows(self)

    def to_arviz(self, draws: int = 1000, sampler: Sampler | None = "nuts", **settings: Any) -> arviz.InferenceData:
        """Draw from the posterior as `posterior` does, with its settings, and return ArviZ data.

        They hold the draws by the parameters' names, divergences, and the rows with their numbers and weights.
        """
        from betacores.export.inference_data import import_arviz

        import_arviz()  # before the work begins
        return self.posterior(draws, sampler, **settings).to_arviz()

    def to_stan(self) -> tuple[str, dict[str, Any]]:
        """Return a weighted Stan program and its data, plain numbers and lists, for any interface of Stan.

        The parameters are ``theta``, in the order of `parameter_names`.
        """
        from betacores.export.stan import to_stan

        return to_stan(self)

    def to_numpyro(self) -> Callable[[], None]:
        """Return a weighted NumPyro model, a function without arguments, for any inference of NumPyro.

        The parameters are the deterministic site ``theta``, in the order of `parameter_names`. Of a model that came
        from NumPyro it is that model, with its own sites, on the weighted rows.
        """
        from betacores.export.numpyro_model import to_numpyro

        return to_numpyro(self)

    def snippet(self, tool: str, folder: str | FilePath = "coreset") -> str:
        """Return a complete Python program that reads the saved coreset with another tool, without betacores.

        Parameters
        ----------
        tool
            ``"stan"``, ``"numpyro"`` or ``"scikit-learn"``.
        folder
            Where `save` wrote, or will write, the coreset.
        """
        from betacores.export.snippet import snippet

        return snippet(self, tool, folder)

    def save(self, path: str | FilePath, *, overwrite: bool = False) -> FilePath:
        """Write the coreset to a folder of Parquet and JSON files, which `betacores.load` reads back."""
        from betacores.storage import save

        return save(self, FilePath(path), overwrite=overwrite)

    def report(
        self,
        data: Any = None,
        y: Any = None,
        *,
        title: str | None = None,
        suspicious: int = 200,
        command: str | None = None,
    ) -> Report:
        """Return a report for people: one HTML page, which shows itself in Jupyter. See `betacores.report`."""
        from betacores.report import make_report

        return make_report(self, data, y, title=title, suspicious=suspicious, command=command)

    def __repr__(self) -> str:
        """Tell a person what it is."""
        from betacores.description import described

        return described(self)
