"""A self-contained page about a consensus that works offline, without scripts, on a phone and on paper."""

from placet.report.document import Origin
from placet.report.page import consensus_page, write_consensus_page
from placet.report.slice_comparison import slices_page, write_slices_page

__all__ = ["Origin", "consensus_page", "slices_page", "write_consensus_page", "write_slices_page"]
