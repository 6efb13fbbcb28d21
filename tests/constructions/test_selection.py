"""The choice of the next row, against a loop written from Algorithm 1 (lines "correlation" and "argmax")."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from betacores.constructions.incremental import select
from betacores.tangent import centred

# One shape for all examples: places are compiled for once.
BATCH, MEMBERS, DRAWS = 6, 3, 5


def correlation(vector, residual):
    """Return `ḡ·R/‖ḡ‖`, or None for a vector without direction."""
    length = sum(float(v) ** 2 for v in vector) ** 0.5
    return sum(float(v) * float(r) for v, r in zip(vector, residual, strict=True)) / length if length > 0 else None


def best_by_hand(candidates, members, residual, free):
    """Return every candidate's gain (None if it cannot be chosen) and the best gain of a member (None if none)."""
    gains = [correlation(c, residual) if may else None for c, may in zip(candidates, free, strict=True)]
    member_gains = [abs(g) for g in (correlation(m, residual) for m in members) if g is not None]
    return gains, max(member_gains, default=None)


def choose(candidates, members, residual, free):
    place, insert = select(
        jnp.asarray(candidates, jnp.float32),
        jnp.asarray(members, jnp.float32),
        jnp.asarray(residual, jnp.float32),
        jnp.asarray(free),
    )
    return int(place), bool(insert)


# Whole numbers make zero vectors, equal vectors and opposite vectors common.
vectors = st.integers(-3, 3).map(float)


@settings(max_examples=150, deadline=None)
@given(
    candidates=arrays(np.float64, (BATCH, DRAWS), elements=vectors),
    members=arrays(np.float64, (MEMBERS, DRAWS), elements=vectors),
    residual=arrays(np.float64, DRAWS, elements=st.floats(-100, 100, width=32)),
    free=arrays(bool, BATCH),
)
def test_choice_is_the_one_of_a_brute_force_loop(candidates, members, residual, free):
    residual = residual - residual.mean()
    gains, best_member = best_by_hand(candidates, members, residual, free)
    choosable = [g for g in gains if g is not None]
    place, insert = choose(candidates, members, residual, free)
    if not choosable:
        assert not insert
        return
    best = max(choosable)
    slack = 1e-5 * (1 + np.abs(residual).sum())
    if best_member is not None:
        assume(abs(best - best_member) > slack)
    assert insert == (best_member is None or best > best_member)
    if insert:
        assert gains[place] is not None, "a row without direction, or one that may not be chosen, was chosen"
        assert gains[place] >= best - slack


RESIDUAL = np.array([2.0, -1.0, -1.0, 0.5, -0.5])
ALONG, AGAINST, ACROSS = RESIDUAL, -RESIDUAL, np.array([0.0, 1.0, -1.0, 0.0, 0.0])
ZERO = np.zeros(DRAWS)
EVERY = np.ones(BATCH, bool)
NOBODY = np.zeros((MEMBERS, DRAWS))


def test_candidate_along_the_residual_wins_whatever_its_length():
    batch = np.stack([100 * ACROSS, ACROSS, 1e-6 * ALONG, AGAINST, ZERO, 1e6 * ACROSS])
    assert choose(batch, NOBODY, RESIDUAL, EVERY) == (2, True)


def test_sign_counts_for_candidates_and_not_for_members():
    batch = np.stack([AGAINST, ACROSS + 0.1 * ALONG, AGAINST, AGAINST, AGAINST, AGAINST])
    assert choose(batch, NOBODY, RESIDUAL, EVERY) == (1, True)
    against = np.stack([ZERO, AGAINST, ZERO])
    assert choose(batch, against, RESIDUAL, EVERY)[1] is False


def test_member_without_direction_does_not_hold_a_candidate_back():
    batch = np.stack([ZERO, ACROSS + 0.1 * ALONG, ZERO, ZERO, ZERO, ZERO])
    assert choose(batch, NOBODY, RESIDUAL, EVERY) == (1, True)


def test_vectors_of_zeros_are_never_chosen_even_when_all_others_point_away():
    batch = np.stack([ZERO, ZERO, ZERO, AGAINST, ZERO, ZERO])
    assert choose(batch, NOBODY, RESIDUAL, EVERY) == (3, True)


@pytest.mark.parametrize(
    ("batch", "free"),
    [(np.zeros((BATCH, DRAWS)), EVERY), (np.tile(ALONG, (BATCH, 1)), ~EVERY)],
    ids=["no directions", "none eligible"],
)
@pytest.mark.parametrize("members", [NOBODY, np.tile(ACROSS, (MEMBERS, 1))], ids=["empty", "with members"])
def test_nothing_selectable_inserts_nothing(batch, free, members):
    assert choose(batch, members, RESIDUAL, free)[1] is False


def test_ineligible_rows_are_passed_over():
    batch = np.stack([ALONG, 2 * ALONG, ACROSS + 0.1 * ALONG, ACROSS, ZERO, ALONG])
    free = np.array([False, False, True, True, True, False])
    assert choose(batch, NOBODY, RESIDUAL, free) == (2, True)


def test_zero_residual_still_chooses_a_row_with_a_direction():
    """A gain of 0 is a gain: the paper takes the argmax whatever its value."""
    batch = np.stack([ZERO, ZERO, ALONG, ZERO, ZERO, ZERO])
    assert choose(batch, NOBODY, ZERO, EVERY) == (2, True)


@settings(max_examples=50, deadline=None)
@given(
    magnitude=st.floats(-6, 10),
    sign=st.sampled_from([-1, 1]),
    noise=arrays(np.float32, DRAWS, elements=st.integers(-1, 1).map(np.float32)),
)
def test_rounding_does_not_make_a_direction_out_of_a_constant(magnitude, sign, noise):
    """Values that differ by one unit in the last place are the same number, computed twice."""
    values = np.float32(sign * 10**magnitude) * (1 + np.finfo(np.float32).eps * noise)
    assert not np.asarray(centred(jnp.asarray(values[None]))).any()


@pytest.mark.parametrize("draws", [10, 100, 5000])
def test_constants_have_no_direction_however_many_draws(draws):
    """The mean of many equal numbers is off by rounding; the vector must be zero all the same."""
    levels = 10.0 ** np.random.default_rng(0).uniform(-3, 10, 300)
    values = np.repeat(levels.astype(np.float32)[:, None], draws, axis=1)
    assert not np.asarray(centred(jnp.asarray(values))).any()


def test_centring_keeps_true_differences():
    values = np.array([[1.0, 2.0, 3.0, 4.0, 5.0], [1e6, 1e6 + 10, 1e6, 1e6, 1e6]], np.float32)
    expected = values.astype(np.float64) - values.astype(np.float64).mean(1, keepdims=True)
    np.testing.assert_allclose(centred(jnp.asarray(values)), expected, atol=0.1)
