"""Logistic regression with labels flipped at random: a share r of all labels, nobody knows which, is the other one.

The true label has `P(+1 | x) = sigmoid(η)`, `η = z·coefficients`, and the observed one is the other with probability
`r < ½`, whatever the row. With the observed label `y ∈ {−1, +1}`, `u = y η` and the last parameter `a = logit(2r)`,

    p(y | x) = r + (1 − 2r) sigmoid(u) = ½ sigmoid(a) + sigmoid(−a) sigmoid(u),

as if a share `2r` of the labels were tosses of a coin. Both terms are positive, so that their logarithms are added
without loss of digits, whatever `η` and `a`. The power integral is the sum over both labels, `p^(1+β) + q^(1+β)`.

β alone cannot undo such flips: but for its ends the curve `r + (1 − 2r) sigmoid(η)` is nearly that of a flatter
logistic model, so that no row looks dirty to it. The ends tell them apart, for the curve does not go to 0 and 1. By
Bayes' rule a given label was flipped with probability `r sigmoid(−u) / p(y | x)`.

Since `r < ½`, the coefficients have their sign. The default prior `a ~ N(−3, 2.5²)` has its median at `r = 2.4 %` and
nine tenths of its mass between 0.04 % and 38 %: labels that people give are mostly right, and yet a rate of 30 % is no
more than 1.4 standard deviations off. Where log-odds are never far from 0 the ends are not seen, and it decides.

The log-likelihood has several modes, also that of a coreset: one that takes the side of a far cluster, say. Searches
therefore begin at a guess from the rows, next to a robust mode, which the model keeps (`settled`). While β is chosen,
the rate is held (`held_for_tuning`).

References: Copas, "Binary regression models for contaminated data", Journal of the Royal Statistical Society B 50
(1988); Bootkrajang and Kabán, "Label-noise robust logistic regression and its applications", ECML PKDD 2012.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, final

import jax
import jax.numpy as jnp
import numpy as np

from betacores.models.base import Model, Response, Rows
from betacores.models.one_further import OneFurther
from betacores.models.predictors import features_of
from betacores.models.prior import GaussianPrior, check_length, gaussian_prior

if TYPE_CHECKING:
    from jaxtyping import Array, Float

# A start with so many flips: no row, however far out, pulls much harder than others.
STARTING_RATE = 0.2
# Of the search for the guess: that of the row scores.
GUESSING_BETA = 0.5
# A rate that is held is so far from its ends, where logarithms end too.
LEAST_RATE = 1e-6


@final
class NoisyLogistic(OneFurther):
    """A binary response with log-odds linear in the covariates, some of whose labels are flipped at random.

    Parameters
    ----------
    rate
        The share of flipped labels, between 0 and ½, if it is known; by default `logit(2 rate)` is estimated, as the
        last parameter.
    intercept
        Whether to add a constant to the linear predictor (as the last coefficient).
    prior
        Prior of the coefficients; independent N(0, 1) if not given.
    rate_prior
        Prior of `logit(2 rate)` for an unknown rate; N(−3, 2.5²) if not given: a rate of 2.4 % in the middle,
        between 0.04 % and 38 % with nine tenths of the probability.
    """

    name: ClassVar[str] = "noisy-logistic"
    response: ClassVar[Response] = "binary"
    further_name: ClassVar[str] = "rate"
    rate: float | None

    def __init__(
        self,
        rate: float | None = None,
        intercept: bool = True,
        prior: GaussianPrior | None = None,
        rate_prior: GaussianPrior | None = None,
    ):
        self._take(rate, rate_prior, (-3.0, 6.25), "a share between 0 and 0.5", lambda value: 0 < value < 0.5)
        self.intercept = bool(intercept)
        self.coefficient_prior = prior or gaussian_prior()
        # Where searches begin: rows that are no flips, a far cluster say, have modes of their own.
        self.guess: Any = None

    def parameter_count(self, columns: int) -> int:
        """One coefficient a column, the intercept, and the rate unless it is known."""
        return columns + int(self.intercept) + self.further

    def parameter_names(self, columns: list[str]) -> list[str]:
        """Coefficients carry their column's name; the last is the log-odds of twice the rate."""
        return [*columns, *["intercept"] * self.intercept, *["logit(2 rate)"] * self.further]

    def bound(self, columns: list[str], labels: np.ndarray | None) -> Model:
        """Check that the prior is one for these columns."""
        del labels
        count = len(columns) + int(self.intercept)
        check_length(self.coefficient_prior, count, "coefficients", "; the rate has a prior of its own")
        return self

    def prior_mean(self, parameters: int) -> Float[Array, " p"]:
        """Return where the prior is centred."""
        mean = self.coefficient_prior.mean_vector(parameters - self.further)
        return jnp.append(mean, self.further_prior.mean) if self.further else mean

    def first_guess(self, columns: int) -> Float[Array, " p"]:
        """Begin at the guess from the rows, else in the middle of the prior."""
        parameters = self.parameter_count(columns)
        return self.prior_mean(parameters) if self.guess is None else jnp.asarray(self.guess)

    def robust_start(self, rows: Rows) -> Float[np.ndarray, " p"]:
        """Start with many flips, of which the rows then leave as many as there are."""
        start = np.array(self.prior_mean(self.parameter_count(np.shape(rows.x)[-1])))
        if self.further:
            start[-1] = np.log(2 * STARTING_RATE / (1 - 2 * STARTING_RATE))
        return start

    def settled(self, rows: Rows) -> NoisyLogistic:
        """Return the model with a guess taken from dirty rows: the classical mode next to a robust one."""
        from betacores.grid import grid_modes
        from betacores.pilot import search
        from betacores.sources import ArraySource

        source = ArraySource(np.asarray(rows.x), np.asarray(rows.y))
        # Made of the same parts as the result, so that one compiled program serves both.
        trial = self.replaced(guess=np.zeros(self.parameter_count(np.shape(rows.x)[1]), np.float32))
        robust = search(trial, source, 1.0, GUESSING_BETA)
        fit = grid_modes(trial, source, robust.theta[None], np.zeros(1))
        return self.replaced(guess=fit.thetas[0] if fit.converged[0] else robust.theta)

    def held_for_tuning(self, columns: int) -> tuple[NoisyLogistic, Float[np.ndarray, " r"]]:
        """Return the model with the rate held at its guess, and the parameters that are held.

        The rate trades against the steepness of the log-odds. Little of what rows say of it is left under a large β:
        the prior's word for it would pass for precision, and a change of the rate for a bias.
        """
        guess = np.asarray(self.first_guess(columns))
        if not self.further:
            return self, guess[:0]
        rate = float(np.clip(self.flip_rate(guess), LEAST_RATE, 0.5 - LEAST_RATE))
        return self.replaced(rate=rate, guess=guess[:-1]), guess[-1:]

    def told(self, theta: Float[np.ndarray, " p"]) -> str:
        """Say how many labels are flipped: they fit the model, and are no contamination."""
        how = "estimated with the coefficients" if self.further else "as given"
        return f"flips: {self.flip_rate(theta):.1%} of the labels, {how}; flip_probability tells which are likely"

    def moved(self, prior: GaussianPrior, way: Float[np.ndarray, "q q"]) -> NoisyLogistic:
        """Return the model for columns in other units: with the prior there, and the guess gone along with them."""
        there, guess = super().moved(prior, way), self.guess
        if guess is None:
            return there
        own = way @ np.asarray(guess[: len(way)], np.float64)
        return there.replaced(guess=np.concatenate([own, guess[len(way) :]]))

    def response_log_likelihood(self, u: Any, y: Any) -> Float[Array, "..."]:
        """Return the log-probability of an observed label."""
        by_coin, by_model = self._log_shares(u)
        return jnp.logaddexp(by_coin, by_model + jax.nn.log_sigmoid(y * u[0]))

    def response_power_integral(self, u: Any, beta: Float[Array, ""]) -> Float[Array, "..."]:
        """Return `p^(1+β) + q^(1+β)`."""
        up, down = (self.response_log_likelihood(u, y) for y in (1.0, -1.0))
        return jnp.exp((1 + beta) * up) + jnp.exp((1 + beta) * down)

    def flip_rate(self, thetas: Float[np.ndarray, "*s p"]) -> Float[np.ndarray, "*s"]:
        """Return the share of flipped labels under parameters, such as the draws of a posterior."""
        from scipy.special import expit

        thetas = np.asarray(thetas, np.float64)
        return 0.5 * expit(thetas[..., -1]) if self.rate is None else np.full(thetas.shape[:-1], self.rate)

    def flip_probability(self, thetas: Float[np.ndarray, "s p"], X: Any, positive: Any) -> Float[np.ndarray, " n"]:
        """Return for every row the probability that its label was flipped, averaged over draws of a posterior.

        Parameters
        ----------
        thetas
            Draws: ``coreset.posterior().draws``.
        X
            The rows, as an array of numbers, in the units of the coreset.
        positive
            For every row whether its label is the second one, ``coreset.labels[1]``.
        """
        from scipy.special import expit

        x, sign = np.asarray(X, np.float64), np.where(np.asarray(positive, bool), 1.0, -1.0)
        thetas = np.atleast_2d(np.asarray(thetas, np.float64))
        z = features_of(self, x)
        rates, total = self.flip_rate(thetas), np.zeros(len(x))
        # One draw after the other: rows may be many.
        for theta, rate in zip(thetas, rates, strict=True):
            fits = sign * (z @ theta[: z.shape[1]])
            wrong = rate * expit(-fits)
            total += wrong / (wrong + (1 - rate) * expit(fits))
        return total / len(thetas)

    def _log_shares(self, u: Any) -> tuple[Any, Any]:
        """Return the logarithms of `r` and of `1 − 2r`."""
        if self.rate is not None:
            rate = jnp.asarray(self.rate, u[0].dtype)
            return jnp.log(rate), jnp.log1p(-2 * rate)
        return jax.nn.log_sigmoid(u[1]) - jnp.log(jnp.asarray(2.0, u[1].dtype)), jax.nn.log_sigmoid(-u[1])
