"""Amounts above a bound, in every notation that Kubernetes reads, and some that nobody reads."""

from __future__ import annotations

from random import Random
from typing import Any


def above(least: int, random: Random) -> Any:
    """A notation of an amount that is `least` or up to eight more."""
    amount = least + random.randrange(9)
    notations: tuple[Any, ...] = (
        f"{amount}e4294967296",
        f"{amount}e-4294967296",
        f"{amount}E8589934592",
        f"{'0' * 256}{amount}",
        f"{amount}.{'0' * 256}",
        f"{amount}.",
        f"+{amount}",
        f"{amount}000m",
        f"{amount}000000u",
        f"{amount}000000000n",
        f"{amount}e0",
        f"{amount}e+00000",
        f"{amount}E-0",
        f"0{amount}.0",
        f"{amount}0e-1",
        f"0.{amount:04}e4" if amount < 10000 else f"{amount}.0e0",
        f"{amount}E",
        f"{amount}Ei",
        f"{amount}.5",
        amount,
        float(amount),
        amount + 0.5,
        f" {amount} ",
        f"{amount}e18",
        f"{amount}e99",
    )
    return random.choice(notations)


def unreadable(random: Random) -> Any:
    """What no quantity is: it bounds nothing, so every bound is broken."""
    return random.choice(
        (
            "eight",
            "8 GPU",
            "0x8",
            "8e",
            "8e1.5",
            "8ki",
            "8KI",
            "٨",
            "1_0",
            "8,0",
            "--8",
            "8mm",
            "\t8\n",  # escaped in JSON, so that it is no blank
            "inf",
        )
    )
