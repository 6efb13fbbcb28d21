"""Methods side by side: the frame's shape, and its numbers against closed forms and against draws taken by hand."""

import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from closed_forms import NOISE, exact_kl, exact_posterior, features, gaussian_divergence
from scipy import special, stats

import betacores as bc
from betacores.models import LinearRegression

ROWS, SIZES = 120, [3, 8]
DIRTY = np.arange(ROWS) % 6 == 0
NUTS = ["r_hat", "effective_sample_size", "divergences"]

rng = np.random.default_rng(0)
X, TEST_X = rng.normal(size=(ROWS, 2)), rng.normal(size=(60, 2))
LINE = np.array([1.5, -1.0, 0.3])


def labelled(x, seed):
    chance = special.expit(2 * features("logistic", x) @ LINE)
    return np.where(np.random.default_rng(seed).random(len(x)) < chance, "yes", "no")


def real(x, seed):
    return features("linear", x) @ LINE + NOISE * np.random.default_rng(seed).normal(size=len(x))


LABELS, TEST_LABELS = labelled(X, 1), labelled(TEST_X, 2)
LABELS = np.where(DIRTY, np.where(LABELS == "yes", "no", "yes"), LABELS)
Y, TEST_Y = real(X, 3) + 4 * DIRTY, real(TEST_X, 4)
# Rows without response: a few of them far off.
POINTS = X + 3.0 * DIRTY[:, None]


def compared(data=POINTS, y=None, **settings):
    """Compare with little work, unless the settings say otherwise."""
    return bc.compare(
        data, y, **{"methods": ["uniform"], "sizes": SIZES, "sampler": "laplace", "draws": 1000} | settings
    )


def timeless(frame):
    return frame.drop(columns="seconds")


def of(frame, method):
    return frame[frame.method == method].reset_index(drop=True)


def at(frame, method, size):
    (found,) = frame[(frame.method == method) & (frame["size"] == size)].itertuples()
    return found


@pytest.fixture(scope="module")
def labels():
    """Two methods on a table with labels, dirty rows known and rows to predict given."""
    return compared(X, LABELS, methods=["uniform", "giga"], truth=DIRTY, test=(TEST_X, TEST_LABELS))


@pytest.fixture(scope="module")
def line():
    return compared(X, Y, model=LinearRegression(NOISE), truth=DIRTY, test=(TEST_X, TEST_Y))


@pytest.fixture(scope="module")
def points():
    return compared(truth=DIRTY, test=TEST_X)


class TestFrame:
    def test_it_has_one_row_a_method_and_size_then_the_references(self, labels):
        assert list(zip(labels.method, labels["size"], strict=True)) == [
            *(("uniform", 3), ("uniform", 8), ("giga", 3), ("giga", 8)),
            *(("all rows", ROWS), ("clean rows", ROWS - DIRTY.sum())),
        ]
        assert list(labels.index) == list(range(6))
        assert (labels.trial == 0).all()

    def test_it_has_the_columns_of_its_measures_in_order(self, labels, line, points):
        first, last = ["trial", "method", "size", "kept", "beta"], ["total_weight", "contamination", "seconds"]
        known = ["kl_to_clean", "dirty"]
        assert list(labels) == [*first, "accuracy", "log_density", "calibration_error", *known, *last]
        assert list(line) == [*first, "rmse", "log_density", *known, *last]
        assert list(points) == [*first, "log_density", *known, *last]

    def test_counts_are_whole_numbers_and_all_else_is_real(self, labels):
        kinds = {name: str(kind) for name, kind in timeless(labels).drop(columns="method").dtypes.items()}
        assert {name for name, kind in kinds.items() if kind == "int64"} == {"trial", "size", "kept"}
        assert {name for name, kind in kinds.items() if kind == "Int64"} == {"dirty"}
        assert all(kind in ("int64", "Int64", "float64") for kind in kinds.values())

    def test_only_references_lack_anything(self, labels):
        built, references = labels[:4], labels[4:]
        assert not built.isna().any(axis=None)
        lacking = ["beta", "dirty", "total_weight", "contamination", "seconds"]
        assert references[lacking].isna().all(axis=None)
        assert references.kl_to_clean.isna().tolist() == [False, True]
        assert not references.drop(columns=[*lacking, "kl_to_clean"]).isna().any(axis=None)
        assert (built.seconds > 0).all()

    def test_without_truth_nothing_is_said_of_dirt(self):
        frame = compared(test=TEST_X)
        assert not {"dirty", "kl_to_clean"} & set(frame)
        assert frame.method.tolist() == ["uniform", "uniform", "all rows"]

    def test_sizes_are_measured_once_and_in_order(self, points):
        pd.testing.assert_frame_equal(
            timeless(compared(truth=DIRTY, test=TEST_X, sizes=np.array([8, 3, 8]))), timeless(points)
        )

    def test_trials_follow_each_other_and_differ(self):
        frame = compared(trials=2, truth=DIRTY)
        assert frame.trial.tolist() == [0] * 4 + [1] * 4
        first, second = frame[:4].reset_index(drop=True), frame[4:].reset_index(drop=True)
        assert (first.method == second.method).all()
        assert (first.log_density != second.log_density).all()

    def test_trials_differ_in_their_coresets_alone_when_the_rows_to_predict_are_given(self):
        first, second = (part for _, part in compared(trials=2, test=TEST_X).groupby("trial"))
        assert (of(first, "uniform").log_density != of(second, "uniform").log_density).all()
        # Both hold the posterior of the same rows, up to the error of 2000 draws.
        np.testing.assert_allclose(of(first, "all rows").log_density, of(second, "all rows").log_density, atol=0.01)

    def test_the_same_seed_gives_the_same_frame_and_another_does_not(self):
        first, same, other = (compared(truth=DIRTY, seed=seed) for seed in (5, 5, 6))
        pd.testing.assert_frame_equal(timeless(first), timeless(same))
        assert (first.log_density != other.log_density).all()


class TestNumbers:
    """Every posterior is drawn from 2000 times: its measures carry that much chance."""

    @pytest.mark.parametrize("method", ["uniform", "giga"])
    @pytest.mark.parametrize("size", SIZES)
    def test_a_coreset_is_that_of_summarize(self, labels, method, size):
        coreset = bc.summarize(X, LABELS, method=method, size=max(SIZES)).at(size)
        found = at(labels, method, size)
        assert found.kept == len(coreset)
        assert found.beta == coreset.beta
        assert found.total_weight == pytest.approx(coreset.weights.sum())
        assert found.contamination == pytest.approx(coreset.contamination)
        assert found.dirty == sum(int(row) % 6 == 0 for row in coreset.indices)
        thetas = coreset.posterior(4000, "laplace", seed=7).draws
        assert_labels_are_predicted_so(found, thetas)

    @pytest.mark.parametrize(("name", "kept"), [("all rows", DIRTY | True), ("clean rows", ~DIRTY)])
    def test_references_of_labels_are_laplace_posteriors_of_their_rows(self, labels, name, kept):
        z, sign = features("logistic", X[kept]), np.where(LABELS[kept] == "yes", 1, -1)
        theta = np.zeros(3)
        for _ in range(20):
            p = special.expit(z @ theta)
            precision = np.eye(3) + (z.T * p * (1 - p)) @ z
            theta = theta + np.linalg.solve(precision, z.T @ (sign * special.expit(-sign * (z @ theta))) - theta)
        thetas = np.random.default_rng(8).multivariate_normal(theta, np.linalg.inv(precision), 4000)
        assert_labels_are_predicted_so(at(labels, name, kept.sum()), thetas)

    def test_responses_are_predicted_as_closed_forms_do(self, line):
        z = features("linear", TEST_X)
        for method, size, rows, weights in posteriors(X, Y, model=LinearRegression(NOISE)):
            mean, precision = exact_posterior(X[rows], Y[rows], weights)
            spread = np.sqrt(NOISE**2 + np.einsum("np,pq,nq->n", z, np.linalg.inv(precision), z))
            found = at(line, method, size)
            assert found.rmse == pytest.approx(np.sqrt(np.mean((TEST_Y - z @ mean) ** 2)), rel=0.02)
            assert found.log_density == pytest.approx(stats.norm(z @ mean, spread).logpdf(TEST_Y).mean(), rel=0.03)

    def test_rows_are_predicted_as_closed_forms_do(self, points):
        for method, size, rows, weights in posteriors(POINTS):
            mean, precision = exact_posterior(POINTS[rows], None, weights)
            predicted = stats.multivariate_normal(mean, np.eye(2) + np.linalg.inv(precision))
            found = at(points, method, size)
            assert found.log_density == pytest.approx(predicted.logpdf(TEST_X).mean(), rel=0.01)

    @pytest.mark.parametrize("kind", ["line", "points"])
    def test_divergence_is_that_between_exact_posteriors(self, kind, request):
        frame = request.getfixturevalue(kind)
        x, y, model = (X, Y, LinearRegression(NOISE)) if kind == "line" else (POINTS, None, "auto")
        whole = bc.summarize(x, y, method="uniform", size=max(SIZES), model=model)
        expected = [exact_kl(whole.at(size), x, y, ~DIRTY) for size in SIZES]
        expected.append(gaussian_divergence(*exact_posterior(x, y), *exact_posterior(x, y, ~DIRTY)))
        np.testing.assert_allclose(frame.kl_to_clean[:3], expected, rtol=0.05)
        assert min(expected) > 0.5

    def test_the_clean_rows_alone_are_followed_by_a_coreset_without_dirty_rows(self):
        """A coreset of all rows, of which none is dirty: its divergence is what chance leaves of zero."""
        frame = compared(X, truth=np.zeros(ROWS), test=TEST_X, sizes=[ROWS])
        assert frame.dirty.tolist()[:1] == [0]
        assert (frame.kl_to_clean[:2] < 0.02).all()

    def test_sizes_beyond_the_table_measure_all_of_it(self, points):
        frame = of(compared(truth=DIRTY, test=TEST_X, sizes=[3, 10 * ROWS]), "uniform")
        assert frame["size"].tolist() == [3, 10 * ROWS]
        assert frame.kept.tolist() == [3, ROWS]
        assert frame.dirty.tolist()[1] == DIRTY.sum()
        assert frame.log_density[1] == pytest.approx(of(points, "all rows").log_density[0], rel=0.01)


def assert_labels_are_predicted_so(found, thetas):
    """Assert that measures are those of draws, computed by hand."""
    chance = special.expit(features("logistic", TEST_X) @ thetas.T)
    own = np.where((TEST_LABELS == "yes")[:, None], chance, 1 - chance)
    assert found.accuracy == pytest.approx((own > 0.5).mean(), abs=0.01)
    assert found.log_density == pytest.approx(np.log(own.mean(1)).mean(), abs=0.03)


def posteriors(x, y=None, **settings):
    """Every method and size of a frame of uniform coresets, with the rows behind its posterior and their weights."""
    whole = bc.summarize(x, y, method="uniform", size=max(SIZES), **settings)
    for coreset in map(whole.at, SIZES):
        yield "uniform", len(coreset), coreset.indices, coreset.weights
    yield "all rows", ROWS, slice(None), None
    yield "clean rows", ROWS - DIRTY.sum(), ~DIRTY, None


@pytest.fixture(scope="module")
def seen():
    """The tables that were summarised in two trials, and their frame."""
    tables = []
    spy = {"beta": 0.0, "size": 3, "guard": lambda x: tables.append(x) or np.ones(len(x))}
    return tables, compared(methods={"spy": spy}, truth=DIRTY, test_share=0.2, trials=2)


class TestHeldOut:
    def test_a_share_of_the_clean_rows_is_held_out_and_no_dirty_one(self, seen):
        for table in seen[0]:
            kept = (POINTS[:, None] == table).all(2).any(1)
            assert len(table) == kept.sum() == ROWS - 20
            assert kept[DIRTY].all()

    def test_other_rows_are_held_out_in_every_trial(self, seen):
        first, second = seen[0]
        assert not np.array_equal(first, second)

    def test_what_is_predicted_are_the_rows_that_are_not_in_the_table(self, seen):
        tables, frame = seen
        for table, found in zip(tables, of(frame, "all rows").log_density, strict=True):
            held = POINTS[~(POINTS[:, None] == table).all(2).any(1)]
            mean, precision = exact_posterior(table)
            predicted = stats.multivariate_normal(mean, np.eye(2) + np.linalg.inv(precision))
            assert found == pytest.approx(predicted.logpdf(held).mean(), rel=0.01)

    def test_responses_stay_with_their_rows(self):
        """A response that the covariates tell exactly is predicted exactly; that of another row is not."""
        frame = compared(X, X @ LINE[:2] + LINE[2], model=LinearRegression(0.1), test_share=0.5)
        assert of(frame, "all rows").rmse[0] < 0.05


class TestMethods:
    def test_plans_of_ones_own_go_by_their_names(self):
        plans = {"trusting": {"beta": 0.0, "guard": None}, "wary": {"method": "pursuit", "beta": 0.7, "guard": None}}
        frame = compared(methods=plans, truth=DIRTY, test=TEST_X)
        assert frame.method.tolist()[:4] == ["trusting", "trusting", "wary", "wary"]
        assert frame.beta.tolist()[:4] == [0.0, 0.0, 0.7, 0.7]
        # Those who trust every row follow the dirty ones.
        assert of(frame, "trusting").kl_to_clean[1] > 5 * of(frame, "wary").kl_to_clean[1]

    def test_a_method_that_stops_earlier_is_measured_as_it_stopped(self):
        frame = of(compared(methods={"short": {"method": "uniform", "size": 4}}, sizes=[3, 4, 8], test=TEST_X), "short")
        assert frame["size"].tolist() == [3, 4, 8]
        assert frame.kept.tolist() == [3, 4, 4]
        assert frame.log_density[2] == pytest.approx(frame.log_density[1], abs=0.02)

    @pytest.mark.parametrize(("method", "quick"), [("psvi", {"steps": 5}), ("quasi-newton", {"iterations": 3})])
    def test_methods_that_optimise_every_size_on_its_own_do_so_for_the_sizes_asked_for(self, method, quick):
        sizes = (3, 5, 8)
        frame = of(compared(methods={method: {"method": method, **quick}}, sizes=sizes, test=TEST_X), method)
        asked = bc.summarize(POINTS, method=method, size=8, sizes=sizes, **quick)
        np.testing.assert_allclose(frame.total_weight, [asked.at(size).weights.sum() for size in sizes], rtol=1e-6)
        assert frame.kept.tolist() == [len(asked.at(size)) for size in sizes]
        assert method != "psvi" or frame.kept.tolist() == list(sizes)

    def test_warnings_say_whom_they_are_about_and_point_at_the_caller(self):
        plans = {"calm": {"method": "uniform"}, "hasty": {"size": "auto", "candidates": 5, "tolerance": 1e-6}}
        with pytest.warns(UserWarning, match=r"^hasty: .*tolerance") as caught:
            bc.compare(POINTS, methods=plans, sizes=[3], test=TEST_X, sampler="laplace", draws=1000)
        assert len(caught) == 1
        assert caught[0].filename == __file__

    def test_progress_is_told_method_by_method(self):
        told = []
        plans = {"one": {"method": "uniform"}, "two": {"method": "uniform", "seed": 1}}
        compared(methods=plans, trials=2, test=TEST_X, progress=lambda *counts: told.append(counts))
        assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]


class TestInputs:
    @pytest.mark.parametrize(
        ("x", "y", "truth"),
        [
            (pd.DataFrame(X, columns=["a", "b"]), pd.Series(LABELS), pd.Series(DIRTY)),
            (pl.DataFrame(X, schema=["a", "b"]), pl.Series(LABELS), pl.Series(DIRTY)),
            (X.tolist(), LABELS.tolist(), DIRTY.astype(int).tolist()),
        ],
        ids=["pandas", "polars", "lists"],
    )
    def test_frames_and_lists_are_read_like_arrays(self, labels, x, y, truth):
        frame = compared(x, y, truth=truth, test=(TEST_X, TEST_LABELS))
        pd.testing.assert_frame_equal(timeless(of(frame, "uniform")), timeless(of(labels, "uniform")))

    @pytest.mark.parametrize("read", [pd.DataFrame, pl.DataFrame, np.ndarray.tolist])
    def test_rows_to_predict_are_read_like_the_others(self, points, read):
        pd.testing.assert_frame_equal(timeless(compared(truth=DIRTY, test=read(TEST_X))), timeless(points))

    @pytest.mark.parametrize("kind", [bool, int, float, object])
    def test_labels_may_be_anything_in_the_same_order(self, labels, kind):
        own, predicted = ((words == "yes").astype(kind) for words in (LABELS, TEST_LABELS))
        frame = compared(X, own, truth=DIRTY, test=(TEST_X, predicted))
        pd.testing.assert_frame_equal(timeless(of(frame, "uniform")), timeless(of(labels, "uniform")))


class TestSamplers:
    def test_laplace_has_no_diagnostics(self, labels, line, points):
        assert not any(set(NUTS) & set(frame) for frame in (labels, line, points))

    @pytest.mark.slow
    def test_nuts_has_its_diagnostics_and_the_same_posterior(self, points):
        frame = compared(truth=DIRTY, test=TEST_X, sampler="nuts", draws=100)
        at = list(frame).index("dirty") + 1
        assert list(frame)[at : at + 3] == NUTS
        assert frame.divergences.tolist()[:2] == [0, 0]
        assert (frame.r_hat[:2] < 1.1).all()
        assert frame.effective_sample_size[:2].between(30, 1000).all()
        assert frame[NUTS][2:].isna().all(axis=None)
        assert str(frame.divergences.dtype) == "Int64"
        np.testing.assert_allclose(frame.log_density, points.log_density, rtol=0.05)


def test_columns_of_a_test_frame_are_found_by_name():
    data, test = pd.DataFrame(X, columns=["a", "b"]), pd.DataFrame(TEST_X, columns=["a", "b"])
    straight, crossed = (compared(data, LABELS, test=(frame, TEST_LABELS)) for frame in (test, test[["b", "a"]]))
    pd.testing.assert_frame_equal(timeless(straight), timeless(crossed))


class TestMistakes:
    """Every mistake is answered before any work begins."""

    @pytest.fixture(autouse=True)
    def _no_work(self, monkeypatch):
        def fail(*_, **__):
            pytest.fail("work began before the input was checked")

        for name in ("reference_posterior", "summarize"):
            monkeypatch.setattr(f"betacores.evaluation.trial.{name}", fail)

    @pytest.mark.parametrize(
        ("settings", "error", "message"),
        [
            ({"methods": ["pursuits"]}, ValueError, r"methods: 'pursuits' is not known\. Did you mean 'pursuit'"),
            ({"methods": {"mine": {"method": "best"}}}, ValueError, "methods: 'best' is not known"),
            ({"methods": {"mine": "pursuit"}}, TypeError, "methods: 'mine' must come with arguments .* got 'pursuit'"),
            ({"methods": []}, ValueError, "methods: expected at least one"),
            ({"methods": {}}, ValueError, "methods: expected at least one"),
            ({"methods": "pursuit"}, TypeError, "methods: expected a list, got 'pursuit'"),
            ({"methods": None}, TypeError, "methods: expected a list, got None"),
            ({"sizes": 10}, TypeError, "sizes: expected a list, got 10; put it in brackets"),
            ({"sizes": "10"}, TypeError, "sizes: expected a list, got '10'"),
            ({"sizes": []}, ValueError, "sizes: expected at least one"),
            ({"sizes": [3, 0]}, ValueError, "sizes: expected a whole number at least 1, got 0"),
            ({"sizes": [3, 2.5]}, TypeError, "sizes: expected a whole number at least 1, got 2.5"),
            ({"trials": 0}, ValueError, "trials: expected a whole number at least 1, got 0"),
            ({"draws": 3}, ValueError, "draws: expected a whole number at least 4, got 3"),
            ({"seed": -1}, ValueError, "seed: expected a whole number at least 0"),
            ({"sampler": "gibbs"}, ValueError, "sampler: 'gibbs' is not known"),
            ({"sampler": "exact"}, ValueError, "sampler: 'exact' is not known.*'nuts', 'laplace'"),
            ({"model": "logit"}, ValueError, r"model: 'logit' is not known\. Did you mean 'logistic'"),
            ({"model": "gaussian-mean"}, ValueError, "y: the model 'gaussian-mean' has no response"),
            *(({"test_share": share}, ValueError, "test_share: .* above 0 and below 1") for share in (0, 1, 1.5, -0.1)),
            ({"test_share": "half"}, TypeError, "test_share: .*got 'half'"),
            ({"truth": DIRTY[1:]}, ValueError, r"truth: expected for each of the 120 rows .*got shape \(119,\)"),
            ({"truth": np.flatnonzero(DIRTY)}, ValueError, r"truth: .*got shape \(20,\)"),
            ({"truth": DIRTY[:, None]}, ValueError, r"truth: .*got shape \(120, 1\)"),
            ({"truth": DIRTY * 2}, ValueError, r"truth: .*true or false; got .*\[2, 0, 0\]"),
            ({"truth": np.where(DIRTY, np.nan, 1.0)}, ValueError, "truth: .*true or false; got .*nan"),
            ({"truth": np.where(DIRTY, "dirty", "clean")}, ValueError, "truth: .*true or false; got .*'dirty'"),
            ({"truth": DIRTY | True}, ValueError, "truth: it calls every row dirty"),
            ({"truth": np.arange(ROWS) > 0}, ValueError, "1 clean rows are too few to hold some out; pass test="),
            ({"test": TEST_X}, TypeError, "test: expected a pair, rows and their responses"),
            ({"test": (TEST_X,)}, TypeError, "test: expected a pair"),
            ({"test": (TEST_X[:, :1], TEST_LABELS)}, ValueError, "test: expected the 2 columns of data, got 1"),
            ({"test": (TEST_X, np.zeros(60))}, ValueError, "test: the label 0.0 is not among those of y"),
            ({"test": (np.full((3, 2), np.nan), TEST_LABELS[:3])}, ValueError, "test: data: row 0, column 'x0' is nan"),
            ({"test": (TEST_X, TEST_LABELS[:-1])}, ValueError, "test: y: expected one value for each of the 60 rows"),
            ({"seed": 2**32 - 1, "trials": 2}, ValueError, "seed: "),
            ({"truth": pd.array([True, None] * 60)}, ValueError, "truth: .*true or false"),
            ({"methods": [["pursuit"]]}, TypeError, r"methods: expected names of methods, got \['pursuit'\]"),
            ({"methods": {"all rows": {}}}, ValueError, "methods: 'all rows' is what a row of the frame is called"),
            (
                {"methods": {"a": {"model": "linear"}}},
                ValueError,
                "methods: 'a' has 'model', which is the same for all",
            ),
            ({"methods": {"a": {}, "b": {"betta": 1}}}, TypeError, "methods: 'b': 'betta' is not a setting"),
            ({"methods": {"a": {"beta": -1}}}, ValueError, "methods: 'a': beta: "),
            (
                {"methods": {"a": {"method": "uniform", "beta": 1}}},
                ValueError,
                "methods: 'a': beta: this method is for",
            ),
            ({"test": (TEST_X, np.full(60, "maybe"))}, ValueError, "test: the label 'maybe' is not among those of y"),
        ],
        ids=lambda value: str(value)[:40] if isinstance(value, dict) else "",
    )
    def test_a_mistake_is_named(self, settings, error, message):
        with pytest.raises(error, match=f"(?s){message}"):
            compared(X, LABELS, **settings)

    def test_mistakes_in_the_table_are_named_as_ever(self):
        with pytest.raises(ValueError, match="y: expected one value for each of the 120 rows"):
            compared(X, LABELS[1:])
        with pytest.raises(ValueError, match="row 4, column 'x1' is nan"):
            compared(np.where(np.arange(2 * ROWS).reshape(ROWS, 2) == 9, np.nan, X), LABELS)

    def test_test_frames_of_other_columns_are_refused(self):
        with pytest.raises(ValueError, match="test: the column 'c' is not among those of data"):
            compared(
                pd.DataFrame(X, columns=["a", "b"]),
                LABELS,
                test=(pd.DataFrame(TEST_X, columns=["a", "c"]), TEST_LABELS),
            )

    def test_a_label_too_rare_to_be_kept_is_named(self):
        lonely = np.where(np.arange(ROWS) == 7, "yes", "no")
        with pytest.raises(pytest.fail.Exception, match="work began"):
            compared(X, lonely, test_share=0.9, seed=1)  # its only row is kept
        with pytest.raises(ValueError, match="draws: 9 parameters need more than 4 draws, got 4"):
            compared(np.random.default_rng(0).normal(size=(ROWS, 8)), LABELS, truth=DIRTY, draws=4)

    def test_what_is_missing_can_be_installed(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "blackjax", None)
        with pytest.raises(ImportError, match=r"sampler: .*install betacores\[nuts\], or choose 'laplace'"):
            compared(sampler="nuts")
        monkeypatch.setitem(sys.modules, "pandas", None)
        with pytest.raises(ImportError, match=r"pandas; install betacores\[pandas\]"):
            compared()


def test_laplace_needs_no_blackjax(monkeypatch):
    monkeypatch.setitem(sys.modules, "blackjax", None)
    assert len(compared(test=TEST_X)) == 3
