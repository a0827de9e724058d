"""Values that have their own JSON file, such as a comparison."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Self

from pydantic import ValidationError

from podium.config import read_file
from podium.errors import ConfigError
from podium.files.atomic import replace_file
from podium.types import FrozenModel


class JsonFile(FrozenModel):
    """A value that can be saved in its own JSON file."""

    description: ClassVar[str]
    """The kind of value in words, for messages, such as "a comparison"."""
    exclude_unset: ClassVar[bool] = False
    """Whether fields that were not set are left out, since some settings distinguish unset fields from defaults."""

    def save(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, self.model_dump_json(indent=1, exclude_unset=self.exclude_unset).encode() + b"\n")

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what `save` wrote.

        Raises:
            ConfigError: the file has something else.
        """
        try:
            return cls.model_validate_json(read_file(path))
        except OSError as error:
            raise ConfigError(
                f"{path}: cannot be read ({error.strerror}); give a file with {cls.description}."
            ) from None
        except ValidationError as error:
            raise ConfigError(
                f"{path}: does not hold {cls.description} ({error.errors()[0]['msg']})."
            ) from None
