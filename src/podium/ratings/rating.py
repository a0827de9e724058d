"""Rates workers by a recording: finds clusters of questions, and counts for each how many a worker answered rightly.

Clusters are found in the wording alone: TF-IDF vectors of the words, 64 dimensions by singular values, then k-means. No
verdict and no task family is looked at. A cluster is named by the words that set it apart, so that a reader of a plan
sees what the Conductor took a question for. `podium.workers.ratings` is the file that results.
"""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Sequence
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

from podium.ratings.answers import Answers, read_answers
from podium.tasks.task import Task
from podium.workers.base import Worker
from podium.workers.calculator import CalculatorWorker
from podium.workers.ratings import WORD, Kinds, Ratings, Tally
from podium.workers.replay import ReplayWorker

_DIMENSIONS = 64
_WORDS = 2
"""Of a kind's name, at least."""
_KEPT = 40
"""Words that a kind is known by, at most."""


def find_clusters(texts: Sequence[str], kinds: int, *, seed: int = 0) -> dict[str, dict[str, float]]:
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


_FIGURES = 5
"""Significant figures of dollars."""


def rate(answers: Answers, kinds: Kinds) -> Ratings:
    """The tallies of all workers over these kinds."""
    empty = Ratings(kinds=kinds, workers={})
    kind_Q = np.array([empty.kind_of(text) for text in answers.texts])
    return Ratings(
        kinds=kinds,
        workers={
            worker: {
                str(kind): Tally(
                    right=round(float(answers.score_QW[kind_Q == kind, number].sum()), 3),
                    questions=int((kind_Q == kind).sum()),
                    cost_usd=float(f"{answers.cost_QW[kind_Q == kind, number].sum():.{_FIGURES}g}"),
                )
                for kind in np.unique(kind_Q)
            }
            for number, worker in enumerate(answers.workers)
        },
    )


async def rate_pool(workers: Iterable[Worker], tasks: Sequence[Task], kinds: Kinds) -> Ratings:
    """The tallies of those of whom something tells how right they are.

    Recorded workers are rated on all questions, calculators on those with a gold answer; where there is none, and of
    other workers, nothing is said.

    Args:
        tasks: `RecordedTasks` of these workers.
    """
    pool = list(workers)
    recorded = [worker for worker in pool if isinstance(worker, ReplayWorker)]
    calculators = [worker for worker in pool if isinstance(worker, CalculatorWorker)]
    ratings = Ratings(kinds=kinds, workers={})
    for measured, asked in ((recorded, tasks), (calculators, with_gold(tasks))):
        if measured and asked:
            ratings = ratings.joined(rate(await read_answers(asked, measured), kinds))
    names = [worker.profile.name for worker in pool]
    return Ratings(
        kinds=kinds, workers={name: ratings.workers[name] for name in names if name in ratings.workers}
    )


def with_gold(tasks: Iterable[Task]) -> list[Task]:
    """Those that have a gold answer: by them anybody's answer can be judged."""
    return [task for task in tasks if task.gold]
