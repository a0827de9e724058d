"""Routers learned from questions and verdicts: ridge and nearest neighbours over hashed n-grams, or over an encoder.

Both score every worker on a question's text and take the best score less a price. Texts become hashed word and
letter n-grams, weighted by how rare they are (scikit-learn), or the vectors that somebody hands in (`encoder`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from podium.baselines.chosen import Choose
from podium.errors import ConfigError

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

Floats = npt.NDArray[np.float64]
Method = Literal["ridge", "neighbours"]
_FEATURES = 2**15


def learn_router(
    method: Method,
    texts: Sequence[str],
    score_QW: Floats,
    workers: Sequence[str],
    *,
    vectors: Mapping[str, Floats] | None = None,
    price_W: Floats | None = None,
    neighbours: int = 20,
    penalty: float = 1.0,
) -> Choose:
    """Learn who answers which question rightly.

    Args:
        texts: Q questions.
        score_QW: how right each worker's answer to each was, in [0, 1].
        vectors: of these questions and of all that are to be routed, by text; None: n-grams.
        price_W: taken off each worker's predicted score; None: nothing.
        neighbours: questions that are asked for their verdicts, for "neighbours".
        penalty: on the squared weights, for "ridge".

    Raises:
        ConfigError: scikit-learn is not installed.
    """
    try:
        from sklearn.linear_model import Ridge  # noqa: PLC0415 - an optional extra
        from sklearn.neighbors import KNeighborsRegressor  # noqa: PLC0415
    except ImportError:
        raise ConfigError(
            "Learned routers need scikit-learn, which is not installed: pip install 'podium-conductor[recordings]'."
        ) from None
    features = _features() if vectors is None else _Looked(vectors)
    model: Any = Ridge(alpha=penalty, solver="sparse_cg", random_state=0)
    if method == "neighbours":
        model = KNeighborsRegressor(
            n_neighbors=min(neighbours, len(texts)), metric="cosine", weights="distance", algorithm="brute"
        )
    model.fit(features.fit_transform(list(texts)), score_QW)
    price = np.zeros(len(workers)) if price_W is None else price_W
    known: dict[str, str] = {}

    def choose(text: str) -> str:
        if text not in known:
            predicted = np.atleast_2d(model.predict(features.transform([text])))[0]
            known[text] = workers[int(np.argmax(predicted - price))]
        return known[text]

    return choose


class _Looked:
    """Vectors that were made beforehand, in the form of a feature extractor."""

    def __init__(self, vectors: Mapping[str, Floats]) -> None:
        self._vectors = vectors

    def transform(self, texts: Sequence[str]) -> Floats:
        """[Q, D]: those of the texts."""
        return np.stack([self._vectors[text] for text in texts])

    fit_transform = transform


def _features() -> Pipeline:
    from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer  # noqa: PLC0415
    from sklearn.pipeline import FeatureUnion, make_pipeline  # noqa: PLC0415

    words = HashingVectorizer(n_features=_FEATURES, ngram_range=(1, 2), alternate_sign=False)
    letters = HashingVectorizer(
        n_features=_FEATURES, analyzer="char_wb", ngram_range=(3, 4), alternate_sign=False
    )
    return make_pipeline(
        FeatureUnion([("words", words), ("letters", letters)]), TfidfTransformer(sublinear_tf=True)
    )
