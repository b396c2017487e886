"""Numbers in Prometheus' text format: sums by labels, and quantiles of histograms."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from prometheus_client.parser import text_string_to_metric_families

Labels = Mapping[str, str]


class Figures:
    """What was scraped once; lines that begin otherwise than `prefixes` are not read."""

    def __init__(self, text: str, prefixes: tuple[str, ...]) -> None:
        lines = (line for line in text.splitlines() if line.startswith(prefixes))
        self.samples = [
            (sample.name, sample.labels, float(sample.value))
            for family in text_string_to_metric_families("\n".join(lines) + "\n")
            for sample in family.samples
        ]

    def of(self, name: str) -> Iterator[tuple[Labels, float]]:
        """The series of one name; the parser ends counters in `_total` that have no such end."""
        names = (name, f"{name}_total")
        return ((labels, value) for found, labels, value in self.samples if found in names)

    def total(self, name: str, wanted: Callable[[Labels], bool] = lambda _: True) -> float:
        """The sum of the series that are wanted."""
        return sum(value for labels, value in self.of(name) if wanted(labels))

    def quantile(self, name: str, share: float, wanted: Callable[[Labels], bool]) -> float:
        """Seconds that a share of a histogram stays below, even within a bucket as Prometheus has it.

        The upper end of the last finite bucket when more take longer; 0 when nothing was counted.
        """
        counts: dict[float, float] = {}
        for labels, value in self.of(f"{name}_bucket"):
            if wanted(labels):
                end = float(labels["le"])
                counts[end] = counts.get(end, 0) + value
        rank = share * max(counts.values(), default=0)
        begin, below = 0.0, 0.0
        for end, count in sorted(counts.items()):
            if end == float("inf"):
                break
            if count >= rank > below:
                return begin + (end - begin) * (rank - below) / (count - below)
            begin, below = end, count
        return begin if rank else 0.0
