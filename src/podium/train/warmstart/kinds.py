"""Kinds of questions, found in their wording alone: what a policy learns to name before it plans.

Questions are vectors of their words (TF-IDF, then 64 dimensions by singular values) and k-means makes the groups. A
kind is called by the words that set it apart, so that a reader of a plan sees what the Conductor took a question for.
Nobody tells families here, nor verdicts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import count

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.cluster import KMeans
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from podium.errors import ConfigError

_DIMENSIONS = 64
_WORD = r"[^\W\d_]{2,}"
_WORDS = 2
"""Of a kind's name, at least."""


def name_kinds(texts: Sequence[str], kinds: int, *, seed: int = 0) -> dict[str, str]:
    """The name of each text's kind; the same arguments give the same ones.

    Args:
        kinds: how many; fewer where there are fewer texts.
    """
    if len(set(texts)) < 2:
        return dict.fromkeys(texts, "all")
    words_QW, vocabulary = _vectors(texts)
    dimensions = min(_DIMENSIONS, words_QW.shape[1] - 1)
    places = words_QW
    if dimensions > 1:
        reduced = TruncatedSVD(dimensions, random_state=seed)
        places = make_pipeline(reduced, Normalizer()).fit_transform(words_QW)
    kind_Q = KMeans(min(kinds, len(set(texts))), n_init=4, random_state=seed).fit_predict(places)
    overall_W = np.asarray(words_QW.mean(axis=0)).ravel()
    names: dict[np.int32, str] = {}
    for kind in np.unique(kind_Q):
        apart_W = np.asarray(words_QW[kind_Q == kind].mean(axis=0)).ravel() - overall_W
        names[kind] = next(name for name in _names(apart_W, vocabulary) if name not in names.values())
    return {text: names[kind] for text, kind in zip(texts, kind_Q, strict=True)}


def _vectors(texts: Sequence[str]) -> tuple[csr_matrix, Sequence[str]]:
    """TF-IDF of the words that stand in two texts; of all words where there is none; else of characters."""
    for pattern, least in ((_WORD, 2), (_WORD, 1), (r"\S", 1)):
        vectorizer = TfidfVectorizer(
            token_pattern=pattern,
            sublinear_tf=True,
            stop_words="english" if pattern == _WORD else None,
            min_df=least,
        )
        with suppress(ValueError):  # Its way to say that no word is left.
            vectors = vectorizer.fit_transform(texts)
            return vectors, vectorizer.get_feature_names_out()
    raise ConfigError("The questions hold no text to tell kinds by; set kinds = 0.")


def _names(apart_W: npt.NDArray[np.float64], vocabulary: Sequence[str]) -> Iterator[str]:
    """The words that set a kind apart most, more and more of them."""
    order = np.argsort(-apart_W, kind="stable")
    for most in count(_WORDS):
        name = " ".join(vocabulary[word] for word in order[:most])
        yield name if most <= len(order) else f"{name} {most}"
