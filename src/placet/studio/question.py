"""The question behind a board as a URL, as a command and as Python code, all with the same results."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from placet.aggregate.result.uncertainty import check_level
from placet.data.parameters import parse_value
from placet.studio.file_lists import paths_of, source_of

LEVEL = 0.95
MOST_SOURCES = 50
"""Sources of one fit: datasets, or values of a column."""


@dataclass(frozen=True)
class Question:
    """The question behind a board: how the file is read, the method and its parameters, the slice, the level."""

    method: str = ""
    params: dict[str, Any] = field(default_factory=dict)
    bootstrap: int = 0
    level: float = LEVEL
    seed: int = 0
    agents: tuple[str, ...] = ()
    instance: str = ""
    by: str = ""
    at: str = ""
    reading: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_query(cls, query: Mapping[str, str], agents: list[str], reading: dict[str, Any]) -> "Question":
        """Parse the query of a URL; ``p.name`` are parameters of the method."""
        params = {key[2:]: parse_value(text) for key, text in query.items() if key.startswith("p.") and text != ""}
        level, bootstrap = float(query.get("level") or LEVEL), int(query.get("bootstrap") or 0)
        check_level(level)
        if not 0 <= bootstrap <= 10_000:
            raise ValueError(f"bootstrap must be in 0..10000 rounds, not {bootstrap}")
        return cls(
            method=query.get("method", ""),
            params=params,
            bootstrap=bootstrap,
            level=level,
            seed=int(query.get("seed") or 0),
            agents=tuple(agents),
            instance=query.get("instance", ""),
            by=query.get("by", ""),
            at=query.get("at", ""),
            reading=reading,
        )

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Question":
        return cls(**{**values, "agents": tuple(values.get("agents", ()))})

    def of_consensus(self) -> dict[str, Any]:
        """What the consensus depends on: everything except the level, the instance and the time shown."""
        return {key: value for key, value in vars(self).items() if key not in ("level", "instance", "at")}

    def command(self, path: str, task: str = "aggregate") -> str:
        """The ``placet`` command with the same answer; empty if the command line has no equivalent."""
        if self.agents or self.at:
            return ""
        words = ["placet", task, *paths_of(path)]
        words += ["--method", self.method] if self.method else []
        reading = dict(self.reading)
        if "format" in reading:
            words += ["--format", str(reading.pop("format"))]
        for name, value in reading.items():
            words += ["--read", f"{name}={','.join(value) if isinstance(value, list) else value}"]
        for name, value in self.params.items():
            words += ["--param", f"{name}={_text(value)}"]
        words += ["--by", self.by] if self.by else []
        words += ["--bootstrap", str(self.bootstrap)] if self.bootstrap else []
        words += ["--level", str(self.level)] if self.level != LEVEL else []
        words += ["--seed", str(self.seed)] if self.seed else []
        return shlex.join(words)

    def python(self, path: str) -> str:
        """Python code with the same answer."""
        options = "".join(f", {name}={value!r}" for name, value in self.reading.items())
        lines = ["import numpy as np", "import placet", ""] if self.agents else ["import placet", ""]
        source = repr(source_of(path))
        read = (
            f"placet.io.read_slices({source}, {self.by!r}{options})" if self.by else f"placet.read({source}{options})"
        )
        lines.append(f"data = {read}")
        if self.agents:
            lines.append(f"voters = [k for k, name in enumerate(data.agents) if str(name) in {self.agents!r}]")
            lines.append("data = data[np.isin(data.agent, voters)]")
        given = {"bootstrap": self.bootstrap, "random_state": self.seed}
        given = {name: value for name, value in given.items() if value} | self.params
        lines.append(
            f"result = placet.consensus(data, {self.method!r}{''.join(f', {k}={v!r}' for k, v in given.items())})"
        )
        if self.instance:
            lines.append(f"result = {{str(name): c for name, c in result.items()}}[{self.instance!r}]")
        if self.at:
            lines.append(f"result = result.at({self.at!r})")
        lines.append(f"result.to_frame({self.level if self.level != LEVEL else ''})")
        return "\n".join(lines)


def _text(value: Any) -> str:
    return {True: "true", False: "false", None: "none"}[value] if isinstance(value, bool | None) else str(value)
