"""The result of every method: scores, uncertainty, ranks, scales, display, boards, differences."""
