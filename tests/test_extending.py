"""The module from which extensions import."""

import podium.extending


def test_every_name_that_extensions_import_is_there() -> None:
    for name in podium.extending.__all__:
        assert getattr(podium.extending, name).__name__ == name
