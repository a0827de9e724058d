"""Rates workers by a recording: finds clusters of questions, and counts each worker's right answers on each cluster.

Clusters depend only on the wording: TF-IDF vectors of the words, reduced to 64 dimensions by SVD, then k-means. No
verdict and no task family is used. The name of a cluster is its most distinctive words, so that a plan shows which
cluster the Conductor saw. `podium.workers.ratings` reads the resulting file.
"""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from importlib.util import find_spec
from itertools import count
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from podium.errors import ConfigError
from podium.planners.answer_matrix import MAX_ANSWERS, AnswerMatrix, MeasuredAnswer
from podium.tasks.task import Task
from podium.types import Message
from podium.workers.base import Request, Worker
from podium.workers.calculator import CalculatorWorker
from podium.workers.ratings import WORD, ClusterWords, Ratings, Tally, WordWeights
from podium.workers.replay import ReplayWorker
from podium.workers.vote import announce, voted_answer

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_DIMENSIONS = 64
_MIN_NAME_WORDS = 2
"""The fewest words of a cluster's name."""
_MAX_WORDS = 40


def find_clusters(texts: Sequence[str], clusters: int, *, seed: int = 0) -> dict[str, dict[str, float]]:
    """The clusters by name, each with the weights of its words. The same arguments give the same clusters.

    Args:
        clusters: how many clusters to find. If there are fewer texts, there are fewer clusters. If the texts have no
            words, or with 1, there are none.

    Raises:
        ConfigError: scikit-learn is not installed.
    """
    vectors = _vectors(texts) if clusters > 1 else None
    if vectors is None:
        return {}
    from sklearn.cluster import KMeans  # noqa: PLC0415 - an optional extra
    from sklearn.decomposition import TruncatedSVD  # noqa: PLC0415
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415
    from sklearn.preprocessing import Normalizer  # noqa: PLC0415

    words_QW, idf_W, vocabulary = vectors
    different = len(set(texts))
    dimensions = min(_DIMENSIONS, words_QW.shape[1] - 1)
    points = words_QW
    with warnings.catch_warnings(action="ignore"):  # k-means warns of equal texts, which are allowed here.
        if dimensions > 1:
            reduced = TruncatedSVD(dimensions, random_state=seed)
            points = make_pipeline(reduced, Normalizer()).fit_transform(words_QW)
        cluster_Q = KMeans(min(clusters, different), n_init=4, random_state=seed).fit_predict(points)
    overall_W = np.asarray(words_QW.mean(axis=0)).ravel()
    by_name: dict[str, dict[str, float]] = {}
    for cluster in np.unique(cluster_Q):
        mean_W = np.asarray(words_QW[cluster_Q == cluster].mean(axis=0)).ravel()
        words = [word for word in np.argsort(-mean_W, kind="stable")[:_MAX_WORDS] if mean_W[word] > 0]
        if not words:
            continue  # No word of these questions counts.
        weight_W = mean_W / np.linalg.norm(mean_W[words]) * idf_W
        distinctive = sorted(words, key=lambda word: overall_W[word] - mean_W[word])
        name = next(
            name for name in _names([vocabulary[word] for word in distinctive]) if name not in by_name
        )
        by_name[name] = {vocabulary[word]: round(float(weight_W[word]), 3) for word in words}
    return by_name


def _vectors(texts: Sequence[str]) -> tuple[csr_matrix, npt.NDArray[np.float64], Sequence[str]] | None:
    """TF-IDF vectors, each word's IDF, and the words: those that occur in two texts, or all words if none does."""
    require_sklearn()
    from sklearn.feature_extraction.text import TfidfVectorizer  # noqa: PLC0415 - an optional extra

    for least in (2, 1):
        vectorizer = TfidfVectorizer(
            token_pattern=WORD.pattern, sublinear_tf=True, stop_words="english", min_df=least
        )
        with suppress(ValueError):  # scikit-learn raises it if no word is left.
            vectors = vectorizer.fit_transform(texts)
            return vectors, vectorizer.idf_, vectorizer.get_feature_names_out()
    return None


def require_sklearn() -> None:
    """Raise a `ConfigError` if scikit-learn is not installed."""
    if find_spec("sklearn") is None:
        raise ConfigError(
            "Clusters of questions need scikit-learn, which is not installed: "
            "pip install 'podium-conductor[recordings]'."
        )


def _names(words: Sequence[str]) -> Iterator[str]:
    """Possible names of a cluster: its first two words, its first three words and so on, then all words with a
    number."""
    for most in count(min(_MIN_NAME_WORDS, len(words))):
        name = "-".join(map(_in_ascii, words[:most]))
        yield name if most <= len(words) else f"{name}-{most}"


def _in_ascii(word: str) -> str:
    """The word in ASCII letters, so that it can be a token of any policy. Its code points if it has no such letters."""
    letters = unicodedata.normalize("NFKD", word).encode("ascii", "ignore").decode()
    return letters or "-".join(f"{ord(letter):x}" for letter in word)


_SIGNIFICANT_DIGITS = 5
_RIDGE = 10.0
"""The penalty of the words' weights. Of 3, 5, 10 and 20, this one routed best over four recorded pools."""


def rate(answers: AnswerMatrix, clusters: ClusterWords) -> Ratings:
    """Compute the tallies of all workers on these clusters."""
    empty = Ratings(clusters=clusters, workers={})
    cluster_Q = np.array([empty.cluster_of(text) for text in answers.texts])
    return Ratings(
        clusters=clusters,
        workers={
            worker: {
                str(cluster): Tally(
                    right=round(float(answers.score_QW[cluster_Q == cluster, number].sum()), 3),
                    questions=int((cluster_Q == cluster).sum()),
                    cost_usd=float(
                        f"{answers.cost_QW[cluster_Q == cluster, number].sum():.{_SIGNIFICANT_DIGITS}g}"
                    ),
                )
                for cluster in np.unique(cluster_Q)
            }
            for number, worker in enumerate(answers.workers)
        },
    )


def fit_words(answers: AnswerMatrix) -> WordWeights | None:
    """Predict each worker's accuracy from a question's words (ridge regression on TF-IDF vectors). Returns None if no
    question has words.

    If there are few questions, this learns more than tallies of clusters, since words are shared by all clusters.
    """
    vectors = _vectors(answers.texts)
    if vectors is None:
        return None
    from sklearn.linear_model import Ridge  # noqa: PLC0415 - an optional extra

    words_QW, idf, vocabulary = vectors
    ridge = Ridge(_RIDGE, fit_intercept=False, solver="sparse_cg")
    weights = np.atleast_2d(ridge.fit(words_QW, answers.score_QW - answers.accuracy).coef_)
    return WordWeights(
        idf={word: round(float(value), 3) for word, value in zip(vocabulary, idf, strict=True)},
        weights={
            worker: {word: round(float(value), 4) for word, value in zip(vocabulary, row, strict=True)}
            for worker, row in zip(answers.workers, weights, strict=True)
        },
    )


async def rate_pool(
    workers: Iterable[Worker],
    tasks: Sequence[Task],
    clusters: ClusterWords,
    *,
    words: bool = False,
) -> Ratings:
    """Compute the tallies of the workers whose answers can be judged.

    Recorded workers are rated on all questions, calculators on the questions with a gold answer. Calculators without
    such questions, recorded workers that were never asked a bare question, and all other workers get no tallies.

    Args:
        tasks: `RecordedTasks` of these workers.
        words: also learn what each word of a question adds to the accuracy of the recorded workers.
    """
    pool = list(workers)
    recorded = [worker for worker in measurable_workers(pool, tasks) if isinstance(worker, ReplayWorker)]
    calculators = [worker for worker in pool if isinstance(worker, CalculatorWorker)]
    tallies = rated = Ratings(clusters=clusters, workers={})
    for measured, judged in ((recorded, tasks), (calculators, with_gold(tasks))):
        if measured and judged:
            answers = await read_answers(judged, measured)
            tallies = tallies.joined(rate(answers, clusters))
            if measured is recorded and words:
                rated = rated.model_copy(update={"words": fit_words(answers)})
    names = [worker.profile.name for worker in pool]
    by_name = {name: tallies.workers[name] for name in names if name in tallies.workers}
    return rated.model_copy(update={"workers": by_name})


def with_gold(tasks: Iterable[Task]) -> list[Task]:
    """The tasks that have a gold answer. On them any worker's answer can be judged."""
    return [task for task in tasks if task.gold]


def measurable_workers(
    workers: Iterable[Worker], tasks: Iterable[Task]
) -> list[ReplayWorker | CalculatorWorker]:
    """The workers whose answers can be graded: recorded workers, and calculators if all tasks have gold answers.

    A recorded worker that was never asked a bare question, such as a judge, is left out.
    """
    known = ReplayWorker | CalculatorWorker if all(task.gold for task in tasks) else ReplayWorker
    measured = [worker for worker in workers if isinstance(worker, known)]
    return [worker for worker in measured if not isinstance(worker, ReplayWorker) or worker.samples]


async def read_answers(
    tasks: Sequence[Task], workers: Sequence[ReplayWorker | CalculatorWorker]
) -> AnswerMatrix:
    """Read every worker's answers to every question. R is the largest number of samples, but at least `MAX_ANSWERS`.

    Args:
        tasks: `RecordedTasks` of these workers, each of whose responses can be graded.
    """
    samples = {worker.profile.name: [await _samples(worker, task) for task in tasks] for worker in workers}
    return AnswerMatrix.of([task.question.text for task in tasks], samples, min_samples=MAX_ANSWERS)


async def _samples(worker: ReplayWorker | CalculatorWorker, task: Task) -> list[MeasuredAnswer]:
    count = worker.count(task.question.text) if isinstance(worker, ReplayWorker) else 1
    samples = []
    for r in range(count):
        messages = (Message(role="user", content=task.question.text),)
        reply = await worker.answer(Request(messages, seed="", earlier_calls=r, duplicate_index=r))
        answer = voted_answer(reply.text)
        samples.append(
            MeasuredAnswer(
                answer,
                float((await task.grade(reply.text)).correct),
                worker.profile.price.cost(reply.usage),
                # The counts are arbitrary, since they are not part of the answer.
                None if answer is None else float((await task.grade(announce(answer, 1, 1))).correct),
            )
        )
    return samples
