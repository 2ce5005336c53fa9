"""The numbers of the analysis at full size: each part reports its own figures."""

from benchmarks.analysis import agreement, humanval

PARTS = (agreement, humanval)

if __name__ == "__main__":
    for part in PARTS:
        part.main()
