"""One self-contained page about a consensus: it works offline, without scripts, on a phone and on paper."""

from placet.report.page import consensus_page, write_consensus_page

__all__ = ["consensus_page", "write_consensus_page"]
