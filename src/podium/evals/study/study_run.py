"""Runs a study in its folder: first the estimate, then the answers, the methods, the decision and the report.

`podium study` asks the user between the two, and prints.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from podium.calls import CallState
from podium.errors import UsageError
from podium.evals.answer_files import ShowProgress
from podium.evals.question_table import AskingProgress, QuestionTable
from podium.evals.study.answers import StudyAnswers, ask_workers
from podium.evals.study.conductors import measure_conductors
from podium.evals.study.decision import StudyDecision, decide
from podium.evals.study.methods import MethodResult, clustered_ratings, crossfit, methods_for
from podium.evals.study.report import write_report
from podium.evals.study.result import RESULT, Bounds, Study
from podium.evals.study.study_estimate import StudyEstimate, estimate_study, most_samples
from podium.evals.study.study_inputs import StudyInputs
from podium.evals.study.team_files import TEAM, write_team_file
from podium.planners.answer_matrix import AnswerMatrix
from podium.rollout.run_folder import RunFolder
from podium.workers.replay import ReplayWorker

_CHANGEABLE = ("questions", "share", "margin", "conductor")
"""Settings that may differ when a study is resumed, since its answers stay valid."""


@dataclass(frozen=True)
class StudyRun(StudyInputs):
    """A study of a team's workers."""

    def estimate(self) -> StudyEstimate:
        """What the study would cost.

        Raises:
            UsageError: the study cannot be made.
        """
        self._check_names()
        return estimate_study(self)

    def open_folder(self, made_of: Mapping[str, object]) -> None:
        """Make the folder, or continue the study in it.

        Args:
            made_of: where the questions come from.

        Raises:
            RunMismatchError: the folder has a study of other questions, or with other settings.
        """
        settings = self.settings
        configuration = {
            **made_of,
            "repeats": settings.repeats,
            "judge": settings.judge,
            "pool": [profile.model_dump(mode="json", exclude={"rating"}) for profile in self.pool.profiles],
            "margin": settings.margin,
            "conductor": settings.conductor,
        }
        RunFolder.open(self.run, configuration, changeable=_CHANGEABLE)

    async def measure(
        self,
        expected: StudyEstimate,
        *,
        on_asked: Callable[[AskingProgress], None] = lambda progress: None,
        on_progress: ShowProgress = lambda what, done, total: None,
    ) -> Study:
        """Ask, decide, and write the result, its report and the files that serve it.

        Args:
            on_asked: called once all workers were asked.
        """
        pool, settings = self.pool, self.settings
        with self.open_call_state(pays=expected.paid) as (call_state, questions):
            table = questions.table(self.run, self.team, pool, settings.concurrency)
            on_asked(await self._ask_workers(table, expected, call_state, on_progress))
            known = StudyAnswers.read(table, questions.judged_by, settings.repeats)
            conducted, left_out = await measure_conductors(
                table,
                known,
                call_state,
                count=expected.conductor_questions,
                checkpoint=None if questions.judged_by == "agreement" else settings.conductor,
                seed=str(settings.seed),
                show=on_progress,
            )
            paid_usd = call_state.run_spent_usd
            spent_usd = known.cost_usd if paid_usd is None else paid_usd
        answers = known.answers
        methods = methods_for(answers, teams=questions.judged_by != "agreement")
        measured = [*crossfit(answers, methods, seed=str(settings.seed)), *conducted]
        decision = decide(measured, margin=settings.margin)
        notes = (*questions.notes, *known.notes, expected.conductor_reason, *left_out)
        result = Study(
            **dict(decision),
            tasks=questions.name,
            questions=len(answers.texts),
            judged_by=questions.judged_by,
            judge=settings.judge if "judge" in questions.judged_by else None,
            workers=answers.workers,
            bounds=Bounds.of(known.repeated),
            misjudged=known.misjudged,
            spent_usd=spent_usd,
            recorded=not expected.paid,
            replayed=tuple(name for name in answers.workers if isinstance(pool.named(name), ReplayWorker)),
            notes=tuple(filter(None, notes)),
            files=self._write_team_files(decision, measured, answers),
        )
        result.save(self.run / RESULT)
        write_report(self.run, result)
        return result

    async def _ask_workers(
        self, table: QuestionTable, expected: StudyEstimate, call_state: CallState, on_progress: ShowProgress
    ) -> AskingProgress:
        """Ask the workers, with what the budget leaves for them beside the Conductors."""
        limit, before = self.team.budget.run_usd, call_state.run_spent_usd or 0.0
        return await ask_workers(
            table,
            repeats=self.settings.repeats,
            reached=expected.reached,
            budget_usd=None if limit is None else max(0.0, limit - expected.conductor_usd - before),
            call_state=call_state,
            show=on_progress,
        )

    def _write_team_files(
        self, decision: StudyDecision, measured: Sequence[MethodResult], answers: AnswerMatrix
    ) -> tuple[str, ...]:
        """Write the team files that serve the recommendation and, if it differs, the cheaper choice. Returns their
        names."""
        ratings = clustered_ratings(answers) if len(answers.workers) > 1 else None
        served = {f"{TEAM}.toml": decision.recommended_index}
        if decision.cheaper_index is not None:
            served["cheaper.toml"] = decision.cheaper_index
        for name, index in served.items():
            write_team_file(
                self.run / name,
                measured[index],
                self.pool,
                pool_name=self.team.workers_file,
                ratings=ratings,
                checkpoint=self.settings.conductor,
            )
        return tuple(served)

    def _check_names(self) -> None:
        """Refuse a judge that is a tool, more repeats than were recorded, and worker names that planners cannot have.

        Raises:
            UsageError: one of these is given.
        """
        settings, pool = self.settings, self.pool
        if settings.judge is not None and pool.named(settings.judge).is_tool:
            raise UsageError(f"--judge {settings.judge}: this worker is a tool; name a model of the pool.")
        if settings.repeats > most_samples(pool):
            raise UsageError(
                f"--repeats {settings.repeats}: a recorded worker of the pool has {most_samples(pool):.0f} "
                "answers to a question at most; give no more."
            )
        odd = next((name for name in pool.names if re.search(r"[+>]|^\d+x", name)), None)
        if odd is not None:
            raise UsageError(
                f"Worker {odd!r} cannot be studied by this name: planners such as committee:A+2xB and cascade:A+B>C "
                "are named by their workers. Rename it in the team file."
            )
