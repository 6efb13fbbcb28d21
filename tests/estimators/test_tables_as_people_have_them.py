"""Words, truth values, dates and missing cells, through all estimators; and what is said of them."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from betacores import CoresetClassifier, CoresetRegressor, CoresetSelector
from betacores.datasets import files
from betacores.tables import TableEncoder

ROWS = 200
EFFECT = {"red": 0.0, "green": 100.0, "blue": -80.0}
NAMES = ["size", "size missing", "colour=green", "colour=red", "new"]


def make_houses(rows=ROWS, seed=0):
    """Return a frame with words, truth and missing cells, and a price made of them."""
    random = np.random.default_rng(seed)
    size = random.normal(100.0, 20.0, rows)
    colour = random.choice(list(EFFECT), rows, p=[0.3, 0.3, 0.4])
    new = random.random(rows) < 0.5
    unknown = random.random(rows) < 0.1
    # Those whose size nobody knows are large.
    price = np.where(unknown, 620, 5 * size) + [EFFECT[name] for name in colour] + 50 * new
    price = price + 40 * random.normal(size=rows)
    frame = pd.DataFrame({"flat": 1.0, "size": np.where(unknown, np.nan, size), "colour": colour, "new": new})
    return frame, pd.Series(price, name="price")


KINDS = {
    "pandas": (lambda frame: frame, lambda series: series),
    "polars": (pl.from_pandas, pl.from_pandas),
    "pyarrow": (pa.Table.from_pandas, lambda series: pa.chunked_array([series])),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_regressor_takes_words_truth_and_missing_cells(kind, light):
    table, series = KINDS[kind]
    frame, price = make_houses()
    fitted = CoresetRegressor(**light).fit(table(frame), series(price))
    coreset = fitted.coreset_
    assert fitted.feature_names_in_.tolist() == ["flat", "size", "colour", "new"]
    assert coreset.columns == NAMES
    # As if the numbers had been made by hand, to the bit.
    made = TableEncoder(scale=None).fit(frame)
    plain = CoresetRegressor(**light).fit(made.transform(frame), price)
    np.testing.assert_array_equal(fitted.sample_indices_, plain.sample_indices_)
    rest, _ = make_houses(50, seed=1)
    np.testing.assert_allclose(fitted.predict(table(rest)), plain.predict(made.transform(rest)), rtol=1e-12)
    # Where they come from.
    assert coreset.origin.sources == ["size", "size", "colour", "colour", "new"]
    assert type(coreset.origin.frame) is type(table(frame))
    assert coreset.origin.target == (None if kind == "pyarrow" else "price")
    np.testing.assert_array_equal(coreset.origin.x, made.transform(frame))
    assert coreset.info.notes[0] == "column 'flat': left out: every cell is 1."
    assert any("of 200 cells missing, filled with the median" in note for note in coreset.info.notes)


def test_words_and_missing_cells_are_worth_what_they_tell(light):
    frame, price = make_houses()
    rest, wanted = make_houses(300, seed=1)
    parts = CoresetRegressor(**light).fit(frame, price)
    # The noise is 40; without the words it would be twice that.
    assert np.sqrt(np.mean((parts.predict(rest) - wanted) ** 2)) < 48
    assert np.std(wanted - CoresetRegressor(**light).fit(frame[["size"]], price).predict(rest[["size"]])) > 80
    # A colour never seen is the most frequent one; missing truth, of which fit saw none, is the more frequent value.
    odd = rest.assign(colour="violet", new=None)
    usual = rest.assign(colour=frame["colour"].mode()[0], new=bool(frame["new"].mean() > 0.5))
    np.testing.assert_allclose(parts.predict(odd), parts.predict(usual), rtol=1e-12)


def test_the_classifier_takes_them_and_labels_of_any_series(light):
    frame, price = make_houses()
    high = price > 500
    answers = []
    for y in (
        high,
        high.astype("boolean"),
        pl.Series("dear", high.to_numpy()),
        pa.chunked_array([high]),
        high.map({True: "yes", False: "no"}),
        high.map({True: "yes", False: "no"}).astype("category"),
        pl.Series("dear", np.where(high, "yes", "no")).cast(pl.Categorical),
    ):
        fitted = CoresetClassifier(**light).fit(frame, y)
        assert fitted.classes_.tolist() in ([False, True], ["no", "yes"])
        assert fitted.predict(frame)[0] in fitted.classes_
        answers.append(fitted.predict_proba(frame))
    for answer in answers[1:]:
        np.testing.assert_allclose(answer, answers[0], rtol=1e-9)
    assert np.mean((answers[0][:, 1] > 0.5) == high) > 0.85


@pytest.mark.parametrize("kind", KINDS)
def test_selected_rows_are_as_they_were(kind, light):
    table, series = KINDS[kind]
    frame, price = make_houses()
    selector = CoresetSelector(**light)
    few, prices = selector.fit_resample(table(frame), series(price))
    assert type(few) is type(table(frame))
    kept = selector.sample_indices_
    assert few.equals(frame.iloc[kept] if kind == "pandas" else table(frame.iloc[kept].reset_index(drop=True)))
    np.testing.assert_array_equal(np.asarray(prices), price.to_numpy()[kept])
    assert selector.coreset_.columns == NAMES


def test_a_network_takes_them(monkeypatch):
    import betacores.neural

    asked = []
    monkeypatch.setattr(betacores.neural, "fit_neural_linear", lambda x, y, **settings: asked.append((x, settings)))
    frame, price = make_houses()
    with pytest.raises(AttributeError):
        CoresetRegressor(model="neural-linear").fit(frame.assign(maker=frame["colour"]), price, groups="maker")
    ((x, settings),) = asked
    assert x.shape == (ROWS, len(NAMES))
    assert np.isfinite(x).all()
    assert len(settings["batches"]) == 3


def test_columns_of_groups_may_be_words_and_stay_in_the_frame(light):
    frame, price = make_houses()
    frame["vendor"] = np.array(["north", "south", "east"])[np.arange(ROWS) % 3]
    for table in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        fitted = CoresetRegressor(**{**light, "size": "auto"}, max_groups=2).fit(table, price, groups="vendor")
        assert fitted.coreset_.columns == NAMES
        assert fitted.coreset_.origin.frame is table
        assert np.isfinite(fitted.predict(table)).all()


def test_arrays_with_missing_cells_and_words_are_imputed_alike(lines, light):
    x, y = lines
    broken = x.copy()
    broken[[3, 5], [1, 2]] = np.nan, np.inf
    fitted = CoresetRegressor(**light).fit(broken, y)
    assert fitted.coreset_.columns == ["x0", "x1", "x1 missing", "x2", "x2 missing"]
    assert fitted.coreset_.origin.frame is None
    assert fitted.score(broken, y) > 0.9
    words = np.column_stack([x.astype(object), np.where(y > 500, "high", "low")])
    assert CoresetClassifier(**light).fit(words, y > 500).score(words, y > 500) == 1.0


def test_a_table_complete_in_fit_has_medians_for_holes_later_on(lines, light):
    x, y = lines
    broken, filled = x.copy(), x.copy()
    broken[[3, 5], [1, 2]] = np.nan, -np.inf
    filled[[3, 5], [1, 2]] = np.median(x[:, 1]), np.median(x[:, 2])
    for table in (
        lambda x: x,
        lambda x: pd.DataFrame(x, columns=list("abc")),
        lambda x: pl.DataFrame(x, schema=list("abc")),
    ):
        fitted = CoresetRegressor(**light).fit(table(x), y)
        np.testing.assert_allclose(fitted.predict(table(broken)), fitted.predict(table(filled)), rtol=1e-12)
        with pytest.raises(ValueError, match=r"column '(x1|b)' has 1, the first in row 3; fill them"):
            fitted.set_params(missing="error").fit(table(x), y).predict(table(broken))
    with pytest.raises(ValueError, match="'b' held numbers in fit, and now holds 'red'"):
        CoresetRegressor(**light).fit(table(x), y).predict(pl.DataFrame({"a": [1.0], "b": ["red"], "c": [1.0]}))


def test_rows_that_count_nothing_have_no_say_in_the_encoding(light):
    frame, price = make_houses()
    more = pd.concat([frame, frame.assign(colour="pink", size=1e9)])
    fitted = CoresetRegressor(**light).fit(more, pd.concat([price, price]), sample_weight=np.arange(2 * ROWS) < ROWS)
    assert fitted.coreset_.columns == NAMES
    assert (fitted.sample_indices_ < ROWS).all()


def test_missing_cells_can_be_refused():
    frame, price = make_houses()
    for kind in (CoresetRegressor, CoresetSelector):
        with pytest.raises(ValueError, match=r"column 'size' has \d+, the first in row \d+; .*missing='impute'"):
            kind(missing="error").fit(frame, price)
    with pytest.raises(ValueError, match="missing: 'skip' is not known"):
        CoresetRegressor(missing="skip").fit(frame, price)


def test_missing_responses_are_named():
    frame, price = make_houses(20)
    for y in (
        price.mask(price.index == 4),
        price.mask(price.index == 4).tolist(),
        pl.Series([None if row == 4 else 1 + row for row in range(20)]),
        [None if row == 4 else row for row in range(20)],
    ):
        with pytest.raises(ValueError, match=r"y: .*missing values, the first in row 4 \(1 in all\); drop these rows"):
            CoresetRegressor().fit(frame, y)
    for word in (None, np.nan, pd.NA):
        labels = ["a", "b", "a", "b", word] * 4
        for y in (labels, np.array(labels, object), pd.Series(labels)):
            with pytest.raises(ValueError, match=r"the first in row 4 \(4 in all\)"):
                CoresetClassifier().fit(frame, y)


def test_words_of_many_kinds_are_no_response_of_a_selector():
    frame, _ = make_houses(30)
    with pytest.raises(ValueError, match="words of at most 20 kinds, got 30 different ones, such as '0th', '10th'"):
        CoresetSelector().fit(frame[["size"]], [f"{j}th" for j in range(30)])


@pytest.mark.data
def test_adult_with_its_words_is_classified_as_well_as_by_logistic_regression():
    try:
        path = files.find("adult")
    except FileNotFoundError:
        pytest.skip("BETACORES_DATA does not hold adult.parquet")
    frame = pl.read_parquet(path).drop("fnlwgt", "education")
    train, test = (frame.filter(pl.col("split") == part).drop("split") for part in ("train", "test"))
    train, test = train[:3000], test[:3000]
    assert (train["workclass"] == "?").any()
    wanted = test["income"].str.strip_chars(".")
    x, y, later = train.drop("income"), train["income"], test.drop("income")
    fitted = CoresetClassifier(size=100, beta=0.05, guard=None, method_settings={"draws": 200}).fit(x, y)
    assert fitted.coreset_.origin.target == "income"
    words = OneHotEncoder(handle_unknown="ignore")
    usual = make_pipeline(
        make_column_transformer((words, make_column_selector(dtype_include="str")), remainder=StandardScaler()),
        LogisticRegression(max_iter=2000),
    )
    usual.fit(x.to_pandas(), y.to_list())
    reached = usual.score(later.to_pandas(), wanted.to_list())
    assert reached > 0.83
    assert fitted.score(later, wanted) > reached - 0.02
