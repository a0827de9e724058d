"""A recording of yes-or-no questions of which each worker knows some."""

from collections.abc import Callable, Mapping
from pathlib import Path

from podium.recordings import RecordedQuestion, RecordedResponse, RecordingWriter


def record_small(
    file: Path,
    knows: Mapping[str, Callable[[int], bool]],
    *,
    questions: int,
    train: int,
    output_tokens: int | None = None,
    held_out: str = "test",
    seconds: float | None = None,
) -> None:
    """Write one of so many questions, numbered from 0; the first `train` are training questions, others `held_out`."""
    with RecordingWriter() as writer:
        for number in range(questions):
            split = "train" if number < train else held_out
            writer.add_question(RecordedQuestion(f"q{number}", f"Is {number} right?", "yes", None, split))
            for worker, is_known in knows.items():
                right = is_known(number)
                text = f"Answer: {'yes' if right else f'no {worker}'}"
                writer.add(
                    f"q{number}",
                    RecordedResponse(
                        worker,
                        0,
                        text,
                        score=float(right),
                        output_tokens=output_tokens,
                        seconds=seconds,
                    ),
                )
        writer.write(file, name=file.stem)
