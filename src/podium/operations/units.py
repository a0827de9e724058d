"""Operations of the skill "units": conversions between measures."""

from __future__ import annotations

from podium.operations.operation import Operation


def _conversion(name: str, big: str, small: str, factor: int) -> Operation:
    return Operation(
        name,
        "units",
        ("int",),
        "int",
        lambda x: x * factor,
        (
            f"convert {{x}} {big} to {small}",
            f"express {{x}} {big} in {small}",
            f"say how many {small} make {{x}} {big}",
        ),
    )


def operations() -> tuple[Operation, ...]:
    """The operations of this skill."""
    return (
        _conversion("metres", "metres", "centimetres", 100),
        _conversion("hours", "hours", "minutes", 60),
        _conversion("minutes", "minutes", "seconds", 60),
        _conversion("weeks", "weeks", "days", 7),
        _conversion("feet", "feet", "inches", 12),
        _conversion("yards", "yards", "feet", 3),
        _conversion("dozens", "dozens", "pieces", 12),
        _conversion("pounds", "pounds", "ounces", 16),
        _conversion("gallons", "gallons", "pints", 8),
    )
