"""Merging: little is lost over shards, bad shards are set aside, and what cannot be merged is said."""

import functools
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from closed_forms import NOISE, exact_kl, exact_posterior, gaussian_divergence, linear_table
from scipy import optimize, special

import betacores as bc
from betacores.models import GaussianMean, LinearRegression, gaussian_prior

ROWS, COLUMNS = 4992, 20


def quietly(function, *arguments, **settings):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        return function(*arguments, **settings), " ".join(str(warning.message) for warning in caught)


@functools.cache
def table(share):
    # Of 5000 rows as many as make sixteen shards of one length, which is compiled for once.
    return bc.datasets.Dirty(
        *(None if part is None else part[:ROWS] for part in bc.datasets.contaminated_gaussian(0, share))
    )


@functools.cache
def shards(share):
    return tuple(bc.summarize(part, beta=0.01, seed=k) for k, part in enumerate(np.split(table(share).x, 16)))


@functools.cache
def bad_shard(share):
    """A shard as long as the others, a share of whose rows is from elsewhere."""
    rng = np.random.default_rng(1)
    x = np.split(table(0.15).x, 16)[3].copy()
    wrong = rng.permutation(len(x))[: round(share * len(x))]
    x[wrong] = rng.normal(3, 1, (len(wrong), COLUMNS))
    return bc.summarize(x, beta=0.01)


@functools.cache
def small(kind, seed=0, rows=200):
    """A small summary by one of the models."""
    x, y = linear_table(seed, rows, 3)
    if kind == "gaussian":
        return bc.summarize(x, beta=0.0)
    if kind == "linear":
        return bc.summarize(x, y, model=LinearRegression(NOISE), beta=0.0, guard=None)
    answer = np.where(special.expit(2 * y) > np.random.default_rng(seed).uniform(size=rows), "yes", "no")
    return bc.summarize(x, answer, beta=0.0, guard=None)


def several(kind, count):
    return [small(kind, seed) for seed in range(count)]


def logistic_mode(x, labels, weights):
    """Mode and precision of a weighted logistic posterior with prior N(0, 1), by scipy."""
    z = np.column_stack([x, np.ones(len(x))])
    sign = np.where(labels == "yes", 1.0, -1.0)

    def loss(theta):
        return 0.5 * theta @ theta - weights @ special.log_expit(sign * (z @ theta))

    theta = optimize.minimize(loss, np.zeros(z.shape[1]), tol=1e-10).x
    chance = special.expit(z @ theta)
    return theta, np.eye(len(theta)) + (z.T * (weights * chance * (1 - chance))) @ z


# What is lost.


@pytest.mark.parametrize("size", [pytest.param("auto", marks=pytest.mark.slow), 30])
def test_sixteen_shards_lose_less_than_half_a_unit(size):
    data = table(0.15)
    clean = data.x[~data.outlier]
    merged = bc.merge(shards(0.15), size=size)
    whole = bc.summarize(data.x, beta=0.01, size=size)
    assert exact_kl(merged, clean) < exact_kl(whole, clean) + 0.5
    assert exact_kl(merged, clean) < 0.5
    assert len(merged) <= (500 if size == "auto" else size)
    assert merged.contamination == pytest.approx(0.15, abs=0.02)
    assert not data.outlier[merged.indices].any()
    assert all(site["trust"] == 1 for site in merged.info.sites)


def test_the_stated_errors_bound_the_true_one():
    merged = bc.merge(shards(0.15))
    rows = [np.concatenate([getattr(one, name) for one in shards(0.15)]) for name in ("X", "weights")]
    own = exact_kl(merged, rows[0], weights=rows[1])
    assert own == pytest.approx(merged.info.kl_estimate.value, abs=5 * merged.info.kl_estimate.standard_error + 1e-3)
    assert own < 0.011
    assert merged.info.inherited_kl == pytest.approx(sum(one.info.kl_estimate.value for one in shards(0.15)))
    assert merged.info.inherited_kl == pytest.approx(sum(site["kl"] for site in merged.info.sites))


def test_the_merged_posterior_is_that_of_the_sites_rows_for_a_line():
    given = several("linear", 3)
    merged = bc.merge(given)
    x, y, weights = (np.concatenate([getattr(one, name) for one in given]) for name in ("X", "y", "weights"))
    assert exact_kl(merged, x, y, weights) < 0.02


def test_the_merged_posterior_is_that_of_the_sites_rows_for_labels():
    given = several("logistic", 3)
    merged = bc.merge(given)
    x, y, weights = (np.concatenate([getattr(one, name) for one in given]) for name in ("X", "y", "weights"))
    ours, theirs = logistic_mode(merged.X, merged.y, merged.weights), logistic_mode(x, y, weights)
    assert gaussian_divergence(*ours, *theirs) < 0.03
    assert merged.labels.tolist() == ["no", "yes"]


def test_all_rows_are_kept_if_there_is_room():
    given = several("gaussian", 2)
    merged = bc.merge(given, size=1000)
    np.testing.assert_array_equal(merged.X, np.concatenate([one.X for one in given]))
    np.testing.assert_allclose(merged.weights, np.concatenate([one.weights for one in given]), rtol=1e-6)
    assert merged.info.kl_estimate.value < 1e-4


def test_merging_in_two_stages_is_merging_at_once_up_to_the_error():
    given = shards(0.15)
    stages = bc.merge([bc.merge(given[:8], seed=1), bc.merge(given[8:], seed=2)])
    once = bc.merge(given)
    ours, theirs = (exact_posterior(one.X, weights=one.weights) for one in (stages, once))
    assert gaussian_divergence(*ours, *theirs) < 0.1
    assert stages.row_count == once.row_count == ROWS
    assert stages.info.inherited_kl > once.info.inherited_kl
    data = table(0.15)
    np.testing.assert_array_equal(stages.X, data.x[stages.indices])


def test_rows_are_numbered_as_if_the_tables_lay_one_below_the_other():
    merged = bc.merge(shards(0.15))
    np.testing.assert_array_equal(merged.X, table(0.15).x[merged.indices])
    np.testing.assert_array_equal(merged.scores, np.concatenate([one.scores for one in shards(0.15)]))
    assert merged.row_count == ROWS
    assert merged.origin is None


def test_the_same_seed_gives_the_same_coreset():
    first, second = (bc.merge(several("gaussian", 3), size=8, seed=4) for _ in range(2))
    np.testing.assert_array_equal(first.indices, second.indices)
    np.testing.assert_array_equal(first.weights, second.weights)


# Bad sites.


@pytest.mark.parametrize("count", [16, 4])
def test_a_contaminated_shard_is_recognised_and_set_aside(count):
    good = [one for k, one in enumerate(shards(0.15)) if k != 3][: count - 1]
    given = [*good[:2], bad_shard(0.6), *good[2:]]
    merged, said = quietly(bc.merge, given, names=[f"hospital {k}" for k in range(count)])
    trust = [site["trust"] for site in merged.info.sites]
    assert trust[2] == 0
    assert min(trust[:2] + trust[3:]) > 0.9
    assert "'hospital 2'" in said
    assert said == " ".join(merged.info.warnings)
    without = bc.merge(good)
    ours, theirs = (exact_posterior(one.X, weights=one.weights) for one in (merged, without))
    assert gaussian_divergence(*ours, *theirs) < 0.05
    begin = sum(one.row_count for one in good[:2])
    assert (merged.scores[begin : begin + given[2].row_count] == 0).all()
    assert not ((merged.indices >= begin) & (merged.indices < begin + given[2].row_count)).any()


@pytest.mark.parametrize("kind", ["linear", "logistic"])
def test_a_site_with_the_response_turned_round_is_set_aside(kind):
    good = several(kind, 3)
    x, y = linear_table(9, 200, 3)
    if kind == "linear":
        bad = bc.summarize(x, -y, model=LinearRegression(NOISE), beta=0.0, guard=None)
    else:
        bad = bc.summarize(x, np.where(y < 0, "yes", "no"), beta=0.0, guard=None)
    merged, said = quietly(bc.merge, {"a": good[0], "b": good[1], "c": bad, "d": good[2]})
    trust = {site["name"]: site["trust"] for site in merged.info.sites}
    assert trust.pop("c") < 0.01
    assert min(trust.values()) > 0.9
    assert "'c'" in said


def test_two_sites_that_contradict_each_other_are_both_kept_with_a_warning():
    given = [shards(0.15)[0], bad_shard(0.6)]
    merged, said = quietly(bc.merge, given, names=["north", "south"])
    assert "'north', 'south' contradict each other" in said
    assert [site["trust"] for site in merged.info.sites] == [1, 1]
    total = sum(one.weights.sum() for one in given)
    assert merged.weights.sum() == pytest.approx(total, rel=0.02)


def test_votes_are_rows_and_not_weights_which_depend_on_beta():
    light = [replace(one, weights=0.2 * one.weights) for one in shards(0.15)[:3]]
    merged, _ = quietly(bc.merge, [bad_shard(0.6), *light])
    assert [site["trust"] for site in merged.info.sites] == [0, 1, 1, 1]
    assert merged.info.sites[1]["believed"] == pytest.approx(0.85 * 312, rel=0.05)


def test_trust_may_be_given():
    given = [shards(0.15)[0], bad_shard(0.6)]
    merged = bc.merge(given, trust=[1.0, 0.0])
    assert exact_kl(merged, given[0].X, weights=given[0].weights) < 0.02
    half = bc.merge(given, trust=[1.0, 0.5], size=1000)
    assert half.weights.sum() == pytest.approx(given[0].weights.sum() + given[1].weights.sum() / 2, rel=1e-5)
    assert bc.merge(given, trust=None).info.warnings == []


# What sites may differ in.


def test_lines_of_different_noise_keep_their_information():
    noises = (0.2, 1.0, 3.0)
    given = []
    for seed, noise in enumerate(noises):
        x = np.random.default_rng(seed).normal(size=(200, 3))
        y = x @ [1.0, -1.0, 0.5] + noise * np.random.default_rng(seed + 10).normal(size=200)
        given.append(bc.summarize(x, y, model=LinearRegression(noise), beta=0.0, guard=None))
    merged = bc.merge(given, size=1000)
    precision, shift = np.eye(4), np.zeros(4)
    for one, noise in zip(given, noises, strict=True):
        mean, own = exact_posterior(one.X, one.y, one.weights, noise)
        precision += own - np.eye(4)
        shift += own @ mean
    ours = exact_posterior(merged.X, merged.y, merged.weights, merged.model.noise)
    assert gaussian_divergence(*ours, np.linalg.solve(precision, shift), precision) < 1e-4
    assert merged.weights.sum() == pytest.approx(sum(one.weights.sum() for one in given), rel=1e-4)
    assert any(note.startswith("noise") for note in merged.info.notes)


def test_summaries_to_be_read_with_the_beta_likelihood_need_one_beta():
    parts = [np.random.default_rng(k).normal(1, 1, (200, 3)) for k in range(3)]
    beta = [bc.summarize(part, beta=0.2, readout="beta") for part in parts[:2]]
    merged = bc.merge(beta)
    assert (merged.readout, merged.beta) == ("beta", 0.2)
    mean = np.average(np.concatenate([one.posterior().mean[None] for one in beta]), axis=0)
    np.testing.assert_allclose(merged.posterior().mean, mean, atol=0.05)
    other = bc.summarize(parts[2], beta=0.3, readout="beta")
    with pytest.raises(ValueError, match=r"different β, 0.2 and 0.3.*readout='classical'"):
        bc.merge([beta[0], other])
    with pytest.raises(ValueError, match="readout='beta' and 'classical'"):
        bc.merge([beta[0], bc.summarize(parts[2], beta=0.2)])


def test_a_prior_can_be_given_where_those_of_the_sites_differ():
    given = [_modelled(GaussianMean(prior=gaussian_prior(0, wide)), seed) for seed, wide in enumerate((1, 4))]
    with pytest.raises(ValueError, match=r"differ in their prior.*prior="):
        bc.merge(given)
    merged = bc.merge(given, prior=gaussian_prior(1, 0.5))
    assert merged.model.prior.precision == 2
    with pytest.raises(TypeError, match="gaussian_prior"):
        bc.merge(given, prior="normal")


# What is given and what comes back.


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda: [], "list is empty"),
        (lambda: small("gaussian"), r"pass \[a, b"),
        (lambda: [small("gaussian"), "b"], "number 1 is a str.*bc.load"),
        (lambda: [small("gaussian"), small("linear")], "different models, 'gaussian-mean' and 'linear'"),
        (lambda: [small("gaussian")] * 2, "'site 0' and 'site 1' are the same summary"),
        (lambda: [small("gaussian"), replace(small("gaussian"))], "the same summary"),
        (lambda: [small("gaussian"), _named("abd", 1)], "'site 0' has a column 'x0', 'site 1' has not"),
        (lambda: [_named("abc"), _named("acb", 1)], "different order .'b' and 'c' at place 1"),
        (lambda: [_labelled(["a", "b"]), _labelled(["a", "c"], 1)], "different labels, 'a', 'b' and 'a', 'c'"),
        (lambda: [_modelled(GaussianMean()), _modelled(GaussianMean(2.0), 1)], "differ in their covariance"),
    ],
)  # fmt: skip
def test_what_cannot_be_merged_is_named(given, message):
    with pytest.raises((TypeError, ValueError), match=message):
        bc.merge(given())


def test_rows_do_not_count_twice(tmp_path):
    one, other, third = several("linear", 3)
    first = bc.merge([one, other])
    stored, part = bc.load(first.save(tmp_path / "merged")), bc.load(one.save(tmp_path / "one"))
    cases = [
        ([one, one.at(2)], "'site 0' and 'site 1' are the same summary, at one size or two.*pass it once"),
        ([one.at(1), third, part], "'site 0' and 'site 2' are the same summary"),
        ([first, other], "'site 1' was merged into 'site 0' already.*leave 'site 1' out"),
        ([part.at(3), stored], "'site 0' was merged into 'site 1' already.*leave 'site 0' out"),
        ([bc.merge([stored, third]), one], "'site 1' was merged into 'site 0' already"),
        ([first, bc.merge([other, third])], "from one and the same summary.*merge the summaries themselves"),
        ([one.update(*linear_table(5, 200, 3)), one], "'site 1' was merged into 'site 0' already"),
    ]
    for given, message in cases:
        with pytest.raises(ValueError, match=message):
            bc.merge(given)
    assert bc.merge([stored, third]).row_count == 600


def test_what_was_set_aside_may_be_merged_again_and_what_is_kept_of_summaries_is_bounded(monkeypatch):
    one, other, third = several("linear", 3)
    without = bc.merge([one, other], trust=[1, 0])
    assert bc.merge([without, other]).row_count == 600
    monkeypatch.setattr("betacores.merging.overlap.MOST_KEPT", 2)
    record = bc.merge([bc.merge([one, other]), third]).info.sites
    assert [len(site["summaries"]) for site in record] == [2, 1]


def _named(names, seed=0):
    return replace(small("gaussian", seed), columns=list(names))


def _labelled(labels, seed=0):
    own = small("logistic", seed)
    return replace(own, labels=np.array(labels), y=np.array(labels)[(own.y == "yes").astype(int)])


def _modelled(model, seed=0):
    return replace(small("gaussian", seed), model=model)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"names": ["a"]}, "one for each of the 2 coresets, got 1"),
        ({"names": ["a", "a"]}, "'a' is there twice"),
        ({"names": "ab"}, "names: expected"),
        ({"size": 0}, "size"),
        ({"trust": [1.0]}, "one number for each of the 2 sites"),
        ({"trust": [1.0, 2.0]}, "between 0"),
        ({"trust": [0, 0]}, "at least one must count"),
        ({"trust": "some"}, "'auto', None"),
        ({"spread": -1}, "spread"),
        ({"seed": -1}, "seed"),
        ({"screen": 0.1}, "not a setting"),
    ],
)
def test_arguments_are_checked(settings, message):
    with pytest.raises((TypeError, ValueError), match=message):
        bc.merge(several("gaussian", 2), **settings)


def test_one_coreset_comes_back_as_it_is_or_smaller():
    one = small("gaussian")
    assert bc.merge([one]) is one
    assert bc.merge([one], size=len(one)) is one
    fewer = bc.merge([one], size=len(one) - 1)
    assert len(fewer) <= len(one) - 1
    np.testing.assert_array_equal(fewer.X, linear_table(0, 200, 3)[0][fewer.indices])


def test_a_coreset_without_rows_adds_its_row_count_and_nothing_else():
    one, nothing = small("gaussian"), _without_rows(small("gaussian", 1))
    merged = bc.merge([nothing, one], names=["empty", "full"])
    assert merged.row_count == 400
    assert exact_kl(merged, one.X, weights=one.weights) < 0.02
    assert (merged.indices >= 200).all()
    assert any("'empty'" in note for note in merged.info.notes)
    with pytest.raises(ValueError, match="'empty' and 'again' are the same summary"):
        bc.merge({"empty": nothing, "full": one, "again": nothing})
    with pytest.raises(ValueError, match="none of them holds a row"):
        bc.merge([nothing, _without_rows(small("gaussian", 2))])


def _without_rows(coreset):
    path = coreset.path._replace(indices=np.zeros(0, int), weights=np.zeros((1, 0)))
    nothing = {"indices": path.indices, "weights": np.zeros(0), "X": coreset.X[:0], "path_X": coreset.X[:0]}
    return replace(coreset, path=path, **nothing)


def test_a_merged_coreset_is_stored_shown_and_exported(tmp_path):
    given = several("linear", 3)
    merged = bc.merge(given, names=["a", "b", "c"])
    loaded = bc.load(merged.save(tmp_path / "merged"))
    assert loaded.info.sites == merged.info.sites
    assert loaded.info.inherited_kl == merged.info.inherited_kl
    np.testing.assert_array_equal(loaded.indices, merged.indices)
    np.testing.assert_array_equal(loaded.weights, merged.weights)
    np.testing.assert_array_equal(loaded.scores, merged.scores)
    again = bc.merge([loaded, small("linear", 3)])
    assert again.row_count == 800
    assert "merge" in repr(merged)
    assert "adds up to" in repr(merged)
    assert "weight" in merged.to_frame()
    assert merged.to_stan()[1]["N"] == len(merged)
    with pytest.raises(ValueError, match=r"merged from others.*coreset\.indices"):
        merged.to_frame(original=True)
    with pytest.raises(ValueError, match="one below the other"):
        merged.report()
    x, y = (np.concatenate(parts) for parts in zip(*(linear_table(seed, 200, 3) for seed in range(3)), strict=True))
    page = merged.report(x, y)
    assert "3 summaries" in page.html
    assert "bc.merge(" in page.html


def test_scores_need_not_be_kept():
    given = [replace(one, contamination=0.1 * k) for k, one in enumerate(several("gaussian", 2), 1)]
    brief = bc.merge(given, keep_scores=False)
    assert brief.row_count == 400
    assert brief.contamination == pytest.approx(0.15)
    assert brief.scores.mean() == pytest.approx(0.85)
    assert brief.scores.strides == (0,)


# Streams.


@functools.cache
def days():
    rng = np.random.default_rng(3)
    return tuple(rng.normal(1, 1, (200, 3)) for _ in range(10))


@functools.cache
def streamed():
    coreset = bc.summarize(days()[0], beta=0.0)
    for day in days()[1:]:
        coreset = coreset.update(day, keep_scores=False)
    return coreset


def test_a_stream_of_ten_days_has_the_posterior_of_all_rows():
    coreset = streamed()
    assert exact_kl(coreset, np.concatenate(days())) < 0.5
    assert coreset.row_count == 2000
    assert len(coreset) < 30
    assert coreset.info.settings["updates"] == 9
    np.testing.assert_array_equal(coreset.X, np.concatenate(days())[coreset.indices])


def test_a_day_of_garbage_is_set_aside():
    garbage = np.random.default_rng(5).normal(4, 1, (200, 3))
    after, said = quietly(streamed().update, garbage)
    assert "'new rows'" in said
    assert "bc.summarize" in said
    assert exact_kl(after, np.concatenate(days())) < 0.5
    assert after.row_count == 2200
    assert (after.scores[-200:] == 0).all()


def test_garbage_of_the_length_of_all_before_is_set_aside_too():
    first = bc.summarize(days()[0], beta=0.0)
    after, _ = quietly(first.update, np.random.default_rng(5).normal(4, 1, (200, 3)))
    assert [site["trust"] for site in after.info.sites] == [1, 0]


def test_new_rows_of_more_than_ten_times_as_many_outvote_the_past():
    few = replace(bc.summarize(days()[0], beta=0.0), scores=np.ones(15, np.float32))
    after, _ = quietly(few.update, np.random.default_rng(5).normal(4, 1, (200, 3)))
    assert [site["trust"] for site in after.info.sites] == [0, 1]


def test_coresets_in_odd_units_can_be_merged_and_are_not_updated():
    shift, scale = np.array([2000.0, 1e6, 0.0]), np.array([10.0, 1e5, 1.0])
    matrix = np.diag([*scale**-2.0, 1.0])
    matrix[3, :3] = matrix[:3, 3] = -shift / scale**2
    matrix[3, 3] += (shift**2 / scale**2).sum()
    # The prior says that coefficients are about one in units of the columns, around their middle.
    prior = gaussian_prior(np.zeros(4), matrix)
    given = [
        replace(one, X=one.X * scale + shift, model=LinearRegression(NOISE, prior=prior))
        for one in several("linear", 2)
    ]
    merged = bc.merge(given, size=1000)
    plain = bc.merge(several("linear", 2), size=1000)
    np.testing.assert_allclose(merged.weights, plain.weights, rtol=1e-6)
    distances = [[site["distance"] for site in one.info.sites] for one in (merged, plain)]
    np.testing.assert_allclose(*distances, rtol=0.02)
    with pytest.raises(ValueError, match=r"estimator\.coreset_"):
        given[0].update(*linear_table(4, 50, 3))


def test_updates_are_reproducible_and_go_on_from_disk(tmp_path):
    first = bc.summarize(days()[0], beta=0.0, seed=7)
    once, again = first.update(days()[1]), first.update(days()[1])
    np.testing.assert_array_equal(once.weights, again.weights)
    loaded = bc.load(once.save(tmp_path / "stream")).update(days()[2])
    np.testing.assert_allclose(loaded.weights, once.update(days()[2]).weights)
    assert loaded.info.settings["seed"] == 9


def test_the_size_asked_for_is_kept():
    first = bc.summarize(days()[0], beta=0.0, size=12)
    assert len(first.update(days()[1])) <= 12
    assert len(first.update(days()[1], size=7)) <= 7


@pytest.mark.parametrize("day", ["one label", "constant column"])
def test_new_rows_that_are_too_much_alike_are_weighed_by_what_is_known(day):
    first = small("logistic", rows=200)
    rng = np.random.default_rng(8)
    x = rng.normal(size=(40, 3))
    y = np.where(rng.uniform(size=40) < 0.5, "yes", "no")
    if day == "one label":
        y[:] = "yes"
    else:
        x[:, 1] = 1.0
    after, _ = quietly(first.update, x, y)
    assert after.row_count == 240
    new = after.scores[200:]
    direct = logistic_mode(
        np.concatenate([first.X, x]),
        np.concatenate([first.y, y]),
        np.concatenate([first.weights, np.where(new >= 0.05, np.minimum(new, 1), 0) * after.info.sites[1]["trust"]]),
    )
    assert gaussian_divergence(*logistic_mode(after.X, after.y, after.weights), *direct) < 0.05


def test_frames_are_matched_by_name(tmp_path):
    frame = pd.DataFrame(days()[0], columns=["a", "b", "c"])
    first = bc.summarize(frame, beta=0.0)
    other = pd.DataFrame(days()[1], columns=["a", "b", "c"])
    after, turned = first.update(other), first.update(other[["c", "a", "b"]])
    np.testing.assert_array_equal(after.weights, turned.weights)
    assert first.update(other.to_numpy()).columns == ["a", "b", "c"]
    with pytest.raises(ValueError, match=r"no column 'b'.*a, b, c"):
        first.update(other[["a", "c"]])
    with pytest.raises(ValueError, match="was not there before, 'd'"):
        first.update(other.assign(d=1.0))
    with pytest.raises(ValueError, match="expected the 3 columns of before, got 2"):
        first.update(days()[1][:, :2])


@functools.cache
def answered(rows=200):
    """A table with a response among its columns, and the summary of its first rows."""
    x, y = linear_table(0, rows + 60, 3)
    answer = np.where(special.expit(2 * y) > np.random.default_rng(0).uniform(size=rows + 60), "yes", "no")
    frame = pd.DataFrame(x, columns=["a", "b", "c"]).assign(answer=answer)
    return frame, bc.summarize(frame[:rows], target="answer", beta=0.0, guard=None)


def same_update(one, other):
    np.testing.assert_array_equal(one.indices, other.indices)
    np.testing.assert_array_equal(one.weights, other.weights)
    np.testing.assert_array_equal(one.scores, other.scores)
    assert one.columns == other.columns


def test_new_rows_may_be_in_files(tmp_path):
    frame, first = answered()
    day = frame[200:]
    expected = first.update(day, target="answer")
    day.to_parquet(tmp_path / "day.parquet", index=False)
    day[["answer", "c", "a", "b"]].to_parquet(tmp_path / "turned.parquet", index=False)
    (tmp_path / "folder").mkdir()
    for k, part in enumerate((day[:20], day[20:])):
        part.to_parquet(tmp_path / "folder" / f"{k}.parquet", index=False)
    given = ["day.parquet", "turned.parquet", "folder", "folder/*.parquet"]
    for place in [*(str(tmp_path / name) for name in given), [tmp_path / "day.parquet"]]:
        same_update(first.update(place, target="answer"), expected)
    rows = bc.summarize(days()[0], beta=0.0)
    np.save(tmp_path / "x.npy", days()[1])
    same_update(rows.update(tmp_path / "x.npy"), rows.update(days()[1]))
    with pytest.raises(ValueError, match="needs a response; pass y, one value a row, or target="):
        first.update(tmp_path / "day.parquet")
    np.save(tmp_path / "x.npy", days()[1][:, :2])
    with pytest.raises(ValueError, match="expected the 3 columns of before, got 2"):
        rows.update(tmp_path / "x.npy")


def test_columns_of_files_are_found_by_name_or_named(tmp_path):
    frame, first = answered()
    day, path = frame[200:], tmp_path / "day.parquet"
    day.assign(later=1.0).to_parquet(path, index=False)
    with pytest.raises(ValueError, match=r"was not there before, 'later'; pass columns=\['a', 'b', 'c'\]"):
        first.update(path, target="answer")
    same_update(
        first.update(path, target="answer", columns=["c", "b", "a"]),
        first.update(day, target="answer"),
    )
    with pytest.raises(ValueError, match=r"no column 'b'.*a, b, c"):
        first.update(path, target="answer", columns=["a", "c"])
    with pytest.raises(ValueError, match="columns: it is for files"):
        first.update(day, target="answer", columns=["a", "b", "c"])


def test_new_rows_of_more_than_a_block_are_read_where_they_are(tmp_path, monkeypatch):
    rng, seen = np.random.default_rng(2), []
    frame = pd.DataFrame(rng.normal(1, 1, (70_000, 3)), columns=["a", "b", "c"])
    first = bc.summarize(frame[:500], beta=0.0)
    frame[["c", "a", "b"]].to_parquet(tmp_path / "large.parquet", index=False)
    monkeypatch.setattr("betacores.sources.parquet.ParquetReader.table", lambda reader: seen.append(reader))
    found = first.update(tmp_path / "large.parquet")
    assert not seen
    assert (found.row_count, found.columns) == (70_500, ["a", "b", "c"])
    new = found.indices[found.indices >= 500] - 500
    np.testing.assert_allclose(found.X[found.indices >= 500], frame.to_numpy()[new])


@pytest.mark.slow
def test_new_rows_may_be_on_a_cluster():
    distributed, dd = pytest.importorskip("distributed"), pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame(np.random.default_rng(2).normal(1, 1, (70_000, 3)), columns=["a", "b", "c"])
    first = bc.summarize(frame[:500], beta=0.0)
    expected = first.update(frame)
    with distributed.Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None):
        found = first.update(dd.from_pandas(frame[["c", "a", "b"]], npartitions=3))
        with pytest.raises(ValueError, match=r"no column 'b'.*a, b, c"):
            first.update(dd.from_pandas(frame[["a", "c"]], npartitions=3))
    np.testing.assert_array_equal(found.indices, expected.indices)
    assert found.columns == ["a", "b", "c"]


@pytest.mark.parametrize("kind", ["frame", "array", "file"])
def test_a_single_row_is_weighed_by_its_score(kind, tmp_path):
    frame, first = answered()
    x, y = frame[["a", "b", "c"]].to_numpy()[200:201], frame["answer"].to_numpy()[200:201]
    if kind == "file":
        frame[200:201].to_parquet(tmp_path / "one.parquet", index=False)
    given = {
        "frame": lambda: first.update(frame[200:201], target="answer", size=1000),
        "array": lambda: first.update(x, y, size=1000),
        "file": lambda: first.update(tmp_path / "one.parquet", target="answer", size=1000),
    }
    after = given[kind]()
    assert after.row_count == 201
    assert after.info.sites[1]["rows"] == 1
    np.testing.assert_array_equal(after.X[-1:], x)
    assert after.weights[-1] == pytest.approx(min(after.scores[200], 1), rel=1e-5)
    assert len(after) == len(first) + 1


def test_a_single_row_of_a_line_and_one_far_away():
    first, (x, y) = small("linear"), linear_table(7, 2, 3)
    after = first.update(x[:1], y[:1], size=1000)
    assert (after.row_count, len(after)) == (201, len(first) + 1)
    assert len(first.update(x[:1], y[:1] + 100, size=1000)) == len(first)
    with pytest.raises(ValueError, match="column 'x1' is nan"):
        first.update(np.where([False, True, False], np.nan, x[:1]), y[:1])


def test_a_day_without_rows_changes_nothing(tmp_path):
    frame, first = answered()
    frame[:0].to_parquet(tmp_path / "empty.parquet", index=False)
    assert first.update(frame[:0], target="answer") is first
    assert first.update(tmp_path / "empty.parquet", target="answer") is first
    assert first.update(np.empty((0, 3)), np.empty(0)) is first
    with pytest.raises(ValueError, match="no column 'b'"):
        first.update(frame[:0].drop(columns="b"), target="answer")
    with pytest.raises(ValueError, match="expected one value for each of the 0 rows"):
        first.update(np.empty((0, 3)), np.ones(2))


def test_responses_of_new_rows_are_checked():
    first = small("logistic")
    x, _ = linear_table(4, 50, 3)
    with pytest.raises(ValueError, match="needs a response"):
        first.update(x)
    with pytest.raises(ValueError, match=r"row 0 is 'maybe'.*'no', 'yes'"):
        first.update(x, np.full(50, "maybe"))


def test_noise_that_was_estimated_is_estimated_again():
    x, y = linear_table(0, 400, 3)
    first = bc.summarize(x[:200], y[:200], beta=0.0, guard=None)
    after = first.update(x[200:], y[200:])
    assert after.model.noise != first.model.noise
    assert after.model.noise == pytest.approx(NOISE, rel=0.15)
    assert first.update(x[200:230], y[200:230]).model.noise == first.model.noise
    known = small("linear")
    assert known.update(x[200:], y[200:]).model.noise == NOISE


# Many seeds.


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("share", [0.0, 0.15, 0.3])
def test_sixteen_shards_lose_little_whatever_the_seed(share, seed):
    data = bc.datasets.contaminated_gaussian(100 + seed, share)
    clean = data.x[~data.outlier]
    given = [bc.summarize(part, seed=k) for k, part in enumerate(np.array_split(data.x, 16))]
    for size in ("auto", 30):
        loss = exact_kl(bc.merge(given, size=size), clean) - exact_kl(bc.summarize(data.x, size=size), clean)
        assert loss < 0.5


def simulated(kind, rng, rows):
    x = rng.normal(size=(rows, 4))
    eta = x @ [1, -2, 0.5, 0] + 0.3
    if kind == "gaussian-mean":
        return x, None
    return x, eta + 0.5 * rng.normal(size=rows) if kind == "linear" else (rng.uniform(size=rows) < special.expit(eta))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gaussian-mean", "linear", "logistic"])
def test_clean_sites_raise_few_alarms_and_bad_ones_are_found(kind):
    alarms, merges, missed = 0, 0, 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        parts = [simulated(kind, rng, 300) for _ in range(16)]
        given = [bc.summarize(x, y, seed=k) for k, (x, y) in enumerate(parts)]
        for count in (16, 4, 2):
            for start in range(0, 16, count):
                merged, said = quietly(bc.merge, given[start : start + count])
                merges += 1
                alarms += min(site["trust"] for site in merged.info.sites) < 0.9 or "contradict" in said
        x, y = parts[0]
        wrong = rng.uniform(size=300) < 0.6
        if kind == "gaussian-mean":
            bad, _ = quietly(bc.summarize, x + 2.0 * wrong[:, None])
        else:
            bad, _ = quietly(bc.summarize, x, np.where(wrong, ~y if kind == "logistic" else -y, y))
        for count in (16, 4):
            merged, _ = quietly(bc.merge, [bad, *given[1:count]])
            missed += merged.info.sites[0]["trust"] > 0.1
    assert alarms <= 0.03 * merges
    assert missed == 0


def test_an_update_of_a_coreset_of_groups_keeps_as_many_rows_as_it_takes():
    rng = np.random.default_rng(4)
    x = rng.normal(size=(600, 2))
    frame = pd.DataFrame(x, columns=["a", "b"]).assign(vendor=rng.choice(list("uvw"), 600))
    y = x @ [1.0, -1.0] + 0.5 * rng.normal(size=600)
    coreset = bc.summarize(frame, y, groups="vendor", max_groups=2)
    updated = coreset.update(frame[["a", "b"]], y)
    assert len(updated) > 2
    assert updated.info.kl_estimate.value < 0.5
    with pytest.raises(ValueError, match="groups: merging chose rows one by one"):
        updated.groups  # noqa: B018
    with pytest.raises(ValueError, match=r"'vendor'.*groups='vendor' too if it names groups"):
        coreset.update(frame, y)


def test_bad_cells_of_new_rows_in_a_file_are_told_with_the_file(tmp_path):
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(rng.normal(size=(300, 2)), columns=["a", "b"])
    frame["y"] = frame["a"] + 0.5 * rng.normal(size=300)
    coreset = bc.summarize(frame, target="y", beta=0.3, guard=None)
    frame.loc[7, "b"] = np.nan
    frame.to_parquet(tmp_path / "day.parquet", index=False)
    with pytest.raises(ValueError, match=r"day\.parquet, row 7, column 'b' is nan"):
        coreset.update(tmp_path / "day.parquet", target="y")
