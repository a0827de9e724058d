"""Kinds of questions, found in their wording alone: what workers are rated by.

Questions are vectors of their words (TF-IDF, then 64 dimensions by singular values) and k-means makes the groups. A
kind is called by the words that set it apart, so that a reader of a plan sees what the Conductor took a question for.
Nobody tells families here, nor verdicts.
"""

from __future__ import annotations

import unicodedata
import warnings
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

from podium.workers.ratings import WORD

_DIMENSIONS = 64
_WORDS = 2
"""Of a kind's name, at least."""
_KEPT = 40
"""Words that a kind is known by, at most."""


def find_kinds(texts: Sequence[str], kinds: int, *, seed: int = 0) -> dict[str, dict[str, float]]:
    """Names of kinds, each with its words and what they count; the same arguments give the same ones.

    Args:
        kinds: how many; fewer where there are fewer texts, and none where these have no words. 1: none, for then all
            questions are alike.
    """
    vectors = _vectors(texts) if kinds > 1 else None
    if vectors is None:
        return {}
    words_QW, idf_W, vocabulary = vectors
    different = len(set(texts))
    dimensions = min(_DIMENSIONS, words_QW.shape[1] - 1)
    places = words_QW
    with warnings.catch_warnings(action="ignore"):  # Of texts that are alike, which is no fault here.
        if dimensions > 1:
            reduced = TruncatedSVD(dimensions, random_state=seed)
            places = make_pipeline(reduced, Normalizer()).fit_transform(words_QW)
        kind_Q = KMeans(min(kinds, different), n_init=4, random_state=seed).fit_predict(places)
    overall_W = np.asarray(words_QW.mean(axis=0)).ravel()
    found: dict[str, dict[str, float]] = {}
    for kind in np.unique(kind_Q):
        mean_W = np.asarray(words_QW[kind_Q == kind].mean(axis=0)).ravel()
        kept = [word for word in np.argsort(-mean_W, kind="stable")[:_KEPT] if mean_W[word] > 0]
        if not kept:
            continue  # Questions without a word that counts.
        counts_W = mean_W / np.linalg.norm(mean_W[kept]) * idf_W
        apart = sorted(kept, key=lambda word: overall_W[word] - mean_W[word])
        name = next(name for name in _names([vocabulary[word] for word in apart]) if name not in found)
        found[name] = {vocabulary[word]: round(float(counts_W[word]), 3) for word in kept}
    return found


def _vectors(texts: Sequence[str]) -> tuple[csr_matrix, npt.NDArray[np.float64], Sequence[str]] | None:
    """TF-IDF of the words that stand in two texts, with each word's IDF; of all words where there is none."""
    for least in (2, 1):
        vectorizer = TfidfVectorizer(
            token_pattern=WORD.pattern, sublinear_tf=True, stop_words="english", min_df=least
        )
        with suppress(ValueError):  # Its way to say that no word is left.
            vectors = vectorizer.fit_transform(texts)
            return vectors, vectorizer.idf_, vectorizer.get_feature_names_out()
    return None


def _names(words: Sequence[str]) -> Iterator[str]:
    """The first of a kind's words, more and more of them; with a number where they are used up."""
    for most in count(min(_WORDS, len(words))):
        name = "-".join(map(_plain, words[:most]))
        yield name if most <= len(words) else f"{name}-{most}"


def _plain(word: str) -> str:
    """In letters of ASCII, so that it can be one token of any policy; its code points where it has none."""
    letters = unicodedata.normalize("NFKD", word).encode("ascii", "ignore").decode()
    return letters or "-".join(f"{ord(letter):x}" for letter in word)
