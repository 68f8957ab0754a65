"""The addresses of the package, all from the setting ``home`` of pyproject.toml; none while that is empty."""

from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

PLACES = {
    "Homepage": "",
    "Documentation": "/tree/main/docs",
    "Changelog": "/blob/main/CHANGELOG.md",
    "Issues": "/issues",
}


class Addresses(MetadataHookInterface):
    """Adds the urls to the metadata when a wheel is built."""

    def update(self, metadata: dict[str, Any]) -> None:
        metadata["urls"] = urls(self.config["home"])


def urls(home: str) -> dict[str, str]:
    """The names of places on the repository's site, and their addresses.

    >>> urls(""), urls("https://example.org/placet/")["Issues"]
    ({}, 'https://example.org/placet/issues')
    """
    return {name: home.rstrip("/") + place for name, place in PLACES.items()} if home else {}
