"""How batches enter on a given basis: at random, by Algorithm 1, and cleansed."""

import jax
import numpy as np
import pytest
from plain_network import columns_that_go_together, in_batches, last_layer, poisoned

from betacores.groups import Groups
from betacores.neural.cleansing import IMPOSSIBLE, Cleansing
from betacores.neural.fit import _batches
from betacores.neural.selection import INITIAL, Basis, Incremental, Uniform
from betacores.randomness import normals

ROWS, SIZE, NOISE, LINE = 600, 20, 0.5, np.array([1.0, -0.5])


def line(seed, rows=ROWS):
    """Rows around a line; the line's covariates are a basis as good as any."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 2)).astype(np.float32)
    return x, (x @ LINE + 0.3 + NOISE * rng.normal(size=rows)).astype(np.float32)


def basis_of(x, y, now, noise=NOISE):
    mean, _ = last_layer(x[now.rows].astype(float), y[now.rows].astype(float), now.weights, noise)
    return Basis(x, (x @ mean[:-1] + mean[-1]).astype(np.float32))


def path(chooser, x, y, rounds, seed=0):
    """Return what had been chosen after each round."""
    steps = [chooser.first()]
    for number in range(rounds):
        key = jax.random.fold_in(jax.random.key(seed), number)
        steps.append(chooser.next(basis_of(x, y, steps[-1]), steps[-1], key))
    return steps


def divided(initial=40, seed=0, rows=ROWS, size=SIZE):
    return _batches(rows, in_batches(rows, size), size, initial, np.random.default_rng(seed))


class TestUniform:
    def test_batches_are_nested_whole_and_stand_for_all_rows(self):
        x, y = line(0)
        batches = divided()
        steps = path(Uniform(y, batches, None, jax.random.key(1)), x, y, 4)
        for number, now in enumerate(steps):
            assert len(now.batches) == number + 1
            assert now.batches == steps[-1].batches[: number + 1]
            assert now.batches[0] == INITIAL
            assert sorted(now.rows) == np.flatnonzero(np.isin(batches.codes, now.batches)).tolist()
            np.testing.assert_allclose(now.weights, ROWS / len(now.rows))
            assert now.noise > 0

    def test_all_batches_once_at_the_end(self):
        x, y = line(0, 60)
        batches = divided(20, rows=60, size=10)
        steps = path(Uniform(y, batches, NOISE, jax.random.key(2)), x, y, len(batches) - 1)
        assert sorted(steps[-1].batches) == list(range(len(batches)))
        np.testing.assert_allclose(steps[-1].weights, 1)
        assert {now.noise for now in steps} == {NOISE}

    def test_every_batch_is_as_likely_as_another(self):
        _, y = line(0, 60)
        batches = Groups([None, "a", "b", "c"], np.arange(60) % 4)
        firsts = [Uniform(y, batches, NOISE, jax.random.key(seed)).order[1] for seed in range(300)]
        counts = np.bincount(firsts, minlength=4)[1:]
        assert (np.abs(counts - 100) < 4 * np.sqrt(300 * 2 / 9)).all()

    def test_the_noise_found_is_that_of_the_rows_outside(self):
        x, y = line(0)
        *_, now = path(Uniform(y, divided(100), None, jax.random.key(1)), x, y, 3)
        assert now.noise == pytest.approx(NOISE, rel=0.15)


def likelihoods(thetas, z, y, beta):
    """`f_n(θ_s)` up to constants, in double precision."""
    away = (y[:, None] - z @ thetas.T) / NOISE
    return -0.5 * away**2 if beta == 0 else np.sqrt(1 + beta) / beta * np.exp(-0.5 * beta * away**2)


STEP = {"draws": 30, "steps": 5, "batch_optimise": None}


class TestAlgorithmOne:
    def by_hand(self, x, y, batches, now, key, beta):
        """The batch that points best towards what is lacking, or None where one inside does better; and how clearly."""
        z, y = np.column_stack([x, np.ones(len(x))]).astype(float), y.astype(float)
        mean, covariance = last_layer(x[now.rows].astype(float), y[now.rows], now.weights, NOISE)
        _, step_key = jax.random.split(key)
        draw_key, _ = jax.random.split(step_key)
        white = normals(draw_key, (STEP["draws"], z.shape[1])).astype(float)
        factor = np.linalg.cholesky(np.linalg.inv(covariance))
        thetas = mean + np.linalg.solve(factor.T, white.T).T
        values = likelihoods(thetas, z, y, beta)
        values -= values.mean(1, keepdims=True)
        vectors = np.stack([values[batches.codes == code].sum(0) for code in range(len(batches))])
        lacking = values.sum(0) - now.weights @ values[now.rows]
        gains = vectors @ lacking / np.linalg.norm(vectors, axis=1)
        inside = np.isin(np.arange(len(batches)), now.batches)
        order = np.where(inside, -np.inf, gains).argsort()
        best, held = int(order[-1]), np.abs(gains[inside]).max()
        rivals = (held, gains[order[-2]]) if gains[best] > held else (gains[best],)
        margin = abs(max(gains[best], held) - max(rivals)) / max(gains[best], held)
        return best if gains[best] > held else None, margin

    @pytest.mark.parametrize("beta", [0.0, 0.5])
    def test_the_batch_that_enters_has_the_largest_correlation_with_the_residual(self, beta):
        x, y = line(1, 120)
        y[50:60] += 1  # not so far that their likelihood under β is the same for all draws, up to rounding
        batches = divided(20, rows=120, size=10)
        chooser = Incremental(y, batches, NOISE, beta=beta, **STEP, learning_rate=1.0)
        now, entered, clear = chooser.first(), 0, 0
        assert (now.batches, now.weights.tolist(), now.noise) == ((INITIAL,), [1.0] * 20, NOISE)
        for number in range(12):
            key = jax.random.fold_in(jax.random.key(3), number)
            wanted, margin = self.by_hand(x, y, batches, now, key, beta)
            after = chooser.next(basis_of(x, y, now), now, key)
            # Nearly equal ones single precision may put in another order.
            if margin > 1e-3:
                assert after.batches == (now.batches if wanted is None else (*now.batches, wanted))
                entered, clear = entered + (wanted is not None), clear + 1
            now = after
        assert entered >= 3
        assert clear >= 10

    @pytest.mark.parametrize("beta", [0.0, 0.5])
    def test_weights_are_not_negative_and_rows_those_of_batches(self, beta):
        x, y = line(2)
        batches = divided()
        for now in path(Incremental(y, batches, None, beta=beta, **STEP), x, y, 4):
            assert (now.weights >= 0).all()
            assert sorted(now.rows) == np.flatnonzero(np.isin(batches.codes, now.batches)).tolist()
            assert len(set(now.batches)) == len(now.batches)
            assert np.isfinite(now.weights).all()

    def test_no_rate_no_weight(self):
        x, y = line(2)
        now = path(Incremental(y, divided(), NOISE, beta=0.0, **STEP, learning_rate=0.0), x, y, 1)[-1]
        assert now.weights[:40].tolist() == [1.0] * 40
        assert now.weights[40:].tolist() == [0.0] * (len(now.rows) - 40)

    def test_the_posterior_comes_closer_to_that_of_all_rows(self):
        x, y = line(3)
        full, covariance = last_layer(x.astype(float), y.astype(float), np.ones(ROWS), NOISE)

        def away(now):
            mean, _ = last_layer(x[now.rows].astype(float), y[now.rows].astype(float), now.weights, NOISE)
            return (mean - full) @ np.linalg.solve(covariance, mean - full)

        steps = path(Incremental(y, divided(), NOISE, beta=0.0, draws=50, steps=100), x, y, 6)
        assert away(steps[-1]) < 0.3 * away(steps[0])
        assert steps[-1].weights.sum() > 2 * steps[0].weights.sum()

    def test_beta_keeps_outliers_light(self):
        x, y = line(4)
        batches = divided()
        y, dirty = poisoned(y, batches, 0.3, "shifted", 0)
        dirty[batches.codes == INITIAL], y = False, np.where(batches.codes == INITIAL, line(4)[1], y).astype(np.float32)
        shares = []
        for beta in (0.0, 0.5):
            now = path(Incremental(y, batches, NOISE, beta=beta, draws=50, steps=100), x, y, 6)[-1]
            shares.append(now.weights[dirty[now.rows]].sum() / now.weights.sum())
        assert shares[1] < 0.05
        assert shares[1] < 0.2 * shares[0]


def cleansing(x, y, batches, seed=0, guarded=False, noise=None):
    return Cleansing(x, y, batches, noise, guarded, jax.random.key(100 + seed))


class TestCleansing:
    seeds = range(2)

    def problem(self, kind, seed, initial=40):
        """A table with planted dirt, its batches, and which of them are dirty; the initial rows are clean ones."""
        x, y = line(seed)
        original = in_batches(ROWS, SIZE)
        y, dirty = poisoned(y, original, 0.3, kind, seed)
        rng = np.random.default_rng(seed)
        clean = ~dirty if kind == "everywhere" else original.means(dirty)[original.codes] == 0
        batches = _batches(ROWS, original, SIZE, rng.choice(np.flatnonzero(clean), initial, replace=False), rng)
        return x, y.astype(np.float32), dirty, batches, batches.means(dirty) > 0

    @pytest.mark.parametrize("seed", seeds)
    def test_of_shifted_rows_none_enters_and_dirty_batches_come_last(self, seed):
        x, y, dirty, batches, bad = self.problem("shifted", seed)
        steps = path(cleansing(x, y, batches, seed), x, y, len(batches) - 1)
        for now in steps:
            assert not dirty[now.rows].any()
            assert (now.weights >= 1).all()
            assert len(set(now.weights)) == 1
            assert np.isin(batches.codes[now.rows], now.batches).all()
        order = steps[-1].batches
        assert sorted(order) == list(range(len(batches)))
        # One or two clean ones may look dirty by chance, and come with the dirty ones.
        assert not bad[list(order[: (~bad).sum() - 2])].any()
        clean = np.flatnonzero(~dirty & (batches.codes != INITIAL))
        assert np.isin(clean, steps[-1].rows).mean() > 0.93

    @pytest.mark.parametrize("seed", seeds)
    def test_clean_batches_enter_whole_or_nearly(self, seed):
        x, y, _, batches, bad = self.problem("shifted", seed)
        now = path(cleansing(x, y, batches, seed), x, y, 10)[-1]
        assert not bad[list(now.batches)].any()
        kept = np.bincount(batches.codes[now.rows], minlength=len(batches)) / batches.sizes
        assert kept[list(now.batches[1:])].min() > 0.85
        assert kept[list(now.batches[1:])].mean() > 0.99

    @pytest.mark.parametrize("seed", seeds)
    def test_of_responses_replaced_by_noise_only_those_near_the_line_enter(self, seed):
        x, y, dirty, batches, bad = self.problem("scattered", seed)
        now = path(cleansing(x, y, batches, seed), x, y, len(batches) - 1)[-1]
        away = np.abs(y - x @ LINE - 0.3) / NOISE
        assert not dirty[now.rows][away[now.rows] > 5].any()
        assert not bad[list(now.batches[: (~bad).sum() - 2])].any()

    @pytest.mark.parametrize("seed", seeds)
    def test_a_clean_table_enters_whole_or_nearly(self, seed):
        x, y = line(seed)
        batches = divided(seed=seed)
        now = path(cleansing(x, y, batches, seed), x, y, len(batches) - 1)[-1]
        assert sorted(now.batches) == list(range(len(batches)))
        assert len(now.rows) >= 0.95 * ROWS

    @pytest.mark.parametrize("seed", seeds)
    def test_a_few_rows_of_a_rare_kind_enter_unless_their_responses_are_of_no_other(self, seed):
        x, y = line(seed)
        batches = divided(seed=seed)
        usual = x @ LINE + 0.3
        few = np.argsort(usual)[:4]
        # Where most responses are lowest these are as high as any, and far from the line.
        y[few[:2]], y[few[2:]] = np.sort(y)[-5], y.max() + 10 * NOISE
        now = path(cleansing(x, y, batches, seed), x, y, len(batches) - 1)[-1]
        away = np.abs(y - usual)[few] / NOISE
        assert away.min() > 1.1 * IMPOSSIBLE
        assert np.isin(few, now.rows).tolist() == [True, True, False, False]

    def test_of_dirt_that_is_everywhere_next_to_nothing_enters(self):
        entered, planted = 0, 0
        for seed in range(4):
            x, y, dirty, batches, _ = self.problem("everywhere", seed)
            now = path(cleansing(x, y, batches, seed), x, y, 14)[-1]
            entered, planted = entered + dirty[now.rows].sum(), planted + dirty.sum()
        assert entered <= 0.05 * planted

    def test_rows_the_guard_does_not_trust_stay_out(self):
        x, y = line(5)
        batches = divided()
        # Responses that agree: only the covariates speak against them.
        x[batches.codes == 7] += 40
        y[batches.codes == 7] = x[batches.codes == 7] @ LINE + 0.3
        steps = path(cleansing(x, y, batches, guarded=True), x, y, len(batches) - 1)
        assert all(not np.isin(7, now.batches) for now in steps)
        assert not (batches.codes[steps[-1].rows] == 7).any()

    @pytest.mark.parametrize("seed", seeds)
    def test_covariates_of_clean_batches_tell_what_damage_looks_like(self, seed):
        random = np.random.default_rng(seed)
        x, bad = columns_that_go_together(random, 450), random.permutation(45)[:27]
        y = x @ random.normal(size=12) + NOISE * random.normal(size=450)
        original = in_batches(450, 10)
        dirty = np.isin(original.codes, bad) & (np.arange(450) % 10 < 7)
        x[dirty, :6] = random.normal(1, 1, (dirty.sum(), 6))
        y[dirty] = random.normal(0, 5 * y.std(), dirty.sum())
        batches = _batches(450, original, 10, np.flatnonzero(~np.isin(original.codes, bad))[:20], random)
        chooser = cleansing(x, y.astype(np.float32), batches, seed, guarded=True)
        assert (chooser.trust[~dirty] < 0.5).mean() < 0.03
        assert (chooser.trust[dirty] < 0.5).mean() > 0.8
        now = path(chooser, x, y, len(batches) - 1)[-1]
        assert dirty[now.rows].mean() < 0.02
        assert np.isin(np.flatnonzero(~dirty), now.rows).mean() > 0.95

    def test_dirty_initial_rows_are_left_out_from_the_beginning(self):
        x, y = line(6)
        batches = divided(60)
        first = batches.members(np.array([INITIAL]))
        y[first[:12]] += 20 * NOISE
        now = cleansing(x, y, batches).first()
        assert not np.isin(first[:12], now.rows).any()
        assert len(now.rows) >= 0.85 * 48

    def test_clean_initial_rows_are_kept_though_the_line_finds_one_unlikely(self):
        x, y = line(6)
        batches = divided(20)
        first = batches.members(np.array([INITIAL]))
        rare = np.random.default_rng(0).choice(ROWS, 20, replace=False)
        y[np.append(rare, first[0])] += 5 * NOISE
        assert cleansing(x, y, batches).first().rows.tolist() == sorted(first)

    def test_the_noise_is_given_or_that_of_the_clean_rows(self):
        x, y, _, batches, _ = self.problem("shifted", 0)
        assert {now.noise for now in path(cleansing(x, y, batches, noise=0.4), x, y, 2)} == {0.4}
        assert path(cleansing(x, y, batches), x, y, 6)[-1].noise == pytest.approx(NOISE, rel=0.15)

    def test_when_nothing_is_left_the_coreset_stays(self):
        x, y = line(7, 60)
        batches = divided(20, rows=60, size=20)
        steps = path(cleansing(x, y, batches), x, y, len(batches) + 2)
        assert len(steps[-1].batches) <= len(batches)
        assert steps[-1].batches == steps[-3].batches
