"""Predictors of a worker's score from a question's text: what learned routers are made of.

Each is a scikit-learn regressor over text vectors (n-grams, or the vectors of an encoder) that predicts all workers at
once. `calibrated` corrects its predictions on questions that it has not seen. This module chooses no worker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from podium.errors import ConfigError
from podium.planners.answer_matrix import Floats
from podium_research.planners.router_dc import Ints, fit_router_dc

Vectors = Callable[[Sequence[str]], Floats]
"""A function from N texts to their vectors, [N, D]."""
Predict = Callable[[Sequence[str]], Floats]
"""A function from N texts to predictions, [N, T]."""
Method = Literal["neighbours", "ridge", "logistic", "boosting", "clusters", "routerdc"]
METHODS: tuple[Method, ...] = get_args(Method)
_HASHED_NGRAMS = 2**15
_DIMENSIONS = 64
"""All methods but the first two read n-grams as vectors of this length (SVD)."""
_QUESTIONS_PER_CLUSTER = 25
_FOLDS = 5


def fit(
    method: Method,
    texts: Sequence[str],
    target_QT: Floats,
    *,
    vectors: Vectors | None = None,
    neighbours: int = 20,
) -> Predict:
    """Train a predictor.

    Args:
        texts: Q questions.
        target_QT: T figures of each question, such as the scores of T workers. "logistic" needs figures in [0, 1].
        vectors: an encoder. Default: hashed n-grams.
        neighbours: for "neighbours", how many of the nearest questions predict.

    Raises:
        ConfigError: there are too few questions.
    """
    encode = vectors or ngram_counts
    predict = _fit(method, encode(texts), target_QT, ngrams=vectors is None, neighbours=neighbours)
    return lambda asked: predict(encode(asked))


def _fit(
    method: Method, x_QD: Any, target_QT: Floats, *, ngrams: bool, neighbours: int = 20
) -> Callable[[Any], Floats]:
    """Train a predictor on encoded texts: counts of n-grams, or an encoder's vectors."""
    from sklearn.decomposition import TruncatedSVD  # noqa: PLC0415 - slow to import
    from sklearn.feature_extraction.text import TfidfTransformer  # noqa: PLC0415
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415
    from sklearn.preprocessing import FunctionTransformer  # noqa: PLC0415

    questions = x_QD.shape[0]
    reduces = ngrams and method not in ("neighbours", "ridge")
    if questions < (2 if reduces else 1):
        raise ConfigError(f"The method {method} has too few training questions; give more.")
    features = make_pipeline(TfidfTransformer(sublinear_tf=True) if ngrams else FunctionTransformer())
    if reduces:
        size = min(_DIMENSIONS, questions - 1)
        features = make_pipeline(features, TruncatedSVD(size, algorithm="arpack", random_state=0))
    x_QD = features.fit_transform(x_QD)
    special = {"logistic": _logistic, "clusters": _clusters, "routerdc": fit_router_dc}.get(method)
    if special is not None:
        predict = special(x_QD, target_QT)
    else:
        model = _regressor(method, neighbours=min(neighbours, questions))
        predict = model.fit(x_QD, target_QT).predict
    return lambda x_ND: np.reshape(predict(features.transform(x_ND)), (x_ND.shape[0], -1))


class CachedPredictor:
    """A predictor that predicts each text once, and all texts that it is asked for together in one go."""

    def __init__(self, predict: Predict) -> None:
        self._predict = predict
        self._rows: dict[str, Floats] = {}

    def __call__(self, texts: Sequence[str]) -> Floats:
        unknown = [text for text in dict.fromkeys(texts) if text not in self._rows]
        if unknown:
            self._rows.update(zip(unknown, self._predict(unknown), strict=True))
        return np.stack([self._rows[text] for text in texts])


@dataclass(frozen=True, slots=True)
class Calibrated:
    """A predictor of T scores whose predictions are probabilities."""

    predict: Predict
    spread_T: Floats
    """The squared error of predictions on unseen questions, divided by p(1 - p): 1 where each score is 0 or 1."""


def fit_calibrated(
    method: Method, texts: Sequence[str], score_QT: Floats, *, vectors: Vectors | None = None
) -> Calibrated:
    """Train a predictor, and correct each worker's predictions by a logistic regression (Platt scaling).

    The correction is learned from out-of-fold predictions: each training question is predicted by a model that was
    trained on the other folds. With fewer than 50 questions there are no folds, and predictions are only limited to
    [0, 1].
    """
    encode = vectors or ngram_counts
    x_QD, ngrams = encode(texts), vectors is None
    from_encoded = _fit(method, x_QD, score_QT, ngrams=ngrams)

    def predict(asked: Sequence[str]) -> Floats:
        return from_encoded(encode(asked))

    if len(texts) < 10 * _FOLDS:
        spread_T = np.full(score_QT.shape[1], 0.5)
        return Calibrated(lambda asked: predict(asked).clip(0, 1), spread_T)
    held_out_QT = np.empty_like(score_QT)
    for held_out, from_others in _folds(method, x_QD, score_QT, ngrams=ngrams):
        held_out_QT[held_out] = from_others(x_QD[held_out])
    corrections = [
        _logistic(held_out_QT[:, [t]], score_QT[:, [t]], penalty=1e-4) for t in range(score_QT.shape[1])
    ]

    def corrected(predicted_NT: Floats) -> Floats:
        columns = [correct(predicted_NT[:, [t]]) for t, correct in enumerate(corrections)]
        return np.hstack(columns)

    share_QT = corrected(held_out_QT)
    return Calibrated(lambda asked: corrected(predict(asked)), spread_of(share_QT, score_QT))


class Fold(NamedTuple):
    """A predictor, and what it predicts of training questions that it has not seen."""

    predict: Predict
    unseen_NT: Floats


def fit_folds(
    method: Method, texts: Sequence[str], target_QT: Floats, *, vectors: Vectors | None = None
) -> list[Fold]:
    """Train up to five predictors, each on all questions but those of its fold; arguments and errors as of `fit`."""
    encode = vectors or ngram_counts
    x_QD = encode(texts)

    def fold(held_out: Ints, predict: Callable[[Any], Floats]) -> Fold:
        return Fold(lambda asked: predict(encode(asked)), predict(x_QD[held_out]))

    return [fold(*each) for each in _folds(method, x_QD, target_QT, ngrams=vectors is None)]


def _folds(
    method: Method, x_QD: Any, target_QT: Floats, *, ngrams: bool
) -> Iterator[tuple[Ints, Callable[[Any], Floats]]]:
    """The questions of each fold, and a predictor that was trained on the other folds."""
    folds = min(_FOLDS, len(target_QT))
    fold_Q = np.random.default_rng(0).permutation(len(target_QT)) % folds
    for fold in range(folds):
        others = np.flatnonzero(fold_Q != fold)
        yield np.flatnonzero(fold_Q == fold), _fit(method, x_QD[others], target_QT[others], ngrams=ngrams)


def spread_of(share_QT: Floats, score_QT: Floats) -> Floats:
    """[T]: the squared error of predicted probabilities on unseen questions, divided by p(1 - p)."""
    spread_T = ((score_QT - share_QT) ** 2).mean(axis=0) / (share_QT * (1 - share_QT)).mean(axis=0)
    return np.asarray(spread_T.clip(0.01, 0.99))


def _regressor(method: Method, *, neighbours: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingRegressor  # noqa: PLC0415 - slow to import
    from sklearn.linear_model import Ridge  # noqa: PLC0415
    from sklearn.multioutput import MultiOutputRegressor  # noqa: PLC0415
    from sklearn.neighbors import KNeighborsRegressor  # noqa: PLC0415

    if method == "neighbours":
        return KNeighborsRegressor(neighbours, metric="cosine", weights="distance", algorithm="brute")
    if method == "ridge":
        return Ridge(alpha=1.0, solver="sparse_cg", random_state=0)
    trees = HistGradientBoostingRegressor(max_iter=60, learning_rate=0.08, max_leaf_nodes=15, random_state=0)
    return MultiOutputRegressor(trees)


def _logistic(x_QD: Floats, target_QT: Floats, *, penalty: float = 0.1) -> Callable[[Floats], Floats]:
    """Logistic regressions whose targets are shares: each question counts as right and as wrong, with these weights."""
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - slow to import

    twice, label = np.concatenate([x_QD, x_QD]), np.repeat([1, 0], len(x_QD))
    models = [
        LogisticRegression(C=1 / penalty, max_iter=1000).fit(
            twice, label, sample_weight=np.concatenate([share_Q, 1 - share_Q])
        )
        for share_Q in target_QT.clip(0.01, 0.99).T
    ]
    return lambda x_ND: np.stack([model.predict_proba(x_ND)[:, 1] for model in models], axis=1)


def _clusters(x_QD: Floats, target_QT: Floats) -> Callable[[Floats], Floats]:
    """The mean figures of a question's cluster (k-means), as Avengers (Zhang et al. 2025) ranks models."""
    from sklearn.cluster import KMeans  # noqa: PLC0415 - slow to import

    count = max(min(2, len(x_QD)), len(x_QD) // _QUESTIONS_PER_CLUSTER)
    clusters = KMeans(count, n_init=4, random_state=0).fit(x_QD)
    mean_CT = np.stack([target_QT[clusters.labels_ == cluster].mean(axis=0) for cluster in range(count)])
    return lambda x_ND: mean_CT[clusters.predict(x_ND)]


def ngram_vectors(texts: Sequence[str]) -> Floats:
    """[N, 2048]: hashed words and pairs of words, of length 1; all 0 for a text without words."""
    from sklearn.feature_extraction.text import HashingVectorizer  # noqa: PLC0415 - slow to import

    words = HashingVectorizer(n_features=2**11, ngram_range=(1, 2), token_pattern=r"\S+")
    return np.asarray(words.transform(texts).toarray(), dtype=np.float64)


def ngram_counts(texts: Sequence[str]) -> Any:
    """[N, 65536], sparse: hashed words and letters of each text. The counts of the latest sets of texts are kept."""
    return _kept_counts(tuple(texts)) if len(texts) > 1 else _counts(texts)


def _counts(texts: Sequence[str]) -> Any:
    from sklearn.feature_extraction.text import HashingVectorizer  # noqa: PLC0415 - slow to import
    from sklearn.pipeline import FeatureUnion  # noqa: PLC0415

    words = HashingVectorizer(n_features=_HASHED_NGRAMS, ngram_range=(1, 2), alternate_sign=False)
    letters = HashingVectorizer(
        n_features=_HASHED_NGRAMS, analyzer="char_wb", ngram_range=(3, 4), alternate_sign=False
    )
    return FeatureUnion([("words", words), ("letters", letters)]).transform(list(texts))


_kept_counts = lru_cache(maxsize=4)(_counts)


def sentence_vectors(model: str) -> Vectors:
    """Load a sentence-transformers model, by its name on the Hugging Face hub or its folder.

    Raises:
        ConfigError: sentence-transformers is not installed, or the model cannot be loaded.
    """
    try:
        from sentence_transformers import SentenceTransformer  # noqa: PLC0415 - loads torch
    except ImportError:
        raise ConfigError(
            f"The vectors of {model!r} need sentence-transformers, which is not installed: "
            "pip install 'podium-research[vectors]'."
        ) from None
    try:
        loaded = SentenceTransformer(model)
    except (OSError, ValueError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise ConfigError(f"The text encoder {model!r} cannot be loaded: {reason}") from error
    return lambda texts: np.asarray(
        loaded.encode(list(texts), normalize_embeddings=True, show_progress_bar=False), dtype=np.float64
    )
