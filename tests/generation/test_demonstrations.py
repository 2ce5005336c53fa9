"""The benign demonstrations that ship with the project are complete and clean."""

from collections import defaultdict
from pathlib import Path

BENIGN = Path(__file__).resolve().parents[2] / "generation" / "demonstrations" / "benign"

SLUGS = {
    "black",
    "asian",
    "native_american",
    "latino",
    "jewish",
    "muslim",
    "chinese",
    "mexican",
    "middle_east",
    "lgbtq",
    "women",
    "mental_dis",
    "physical_dis",
}

AT_LEAST = 20
SHORTEST, LONGEST = 20, 160


def lines_of(path):
    """The lines of a file; a missing or doubled newline at the end shows up as it is."""
    text = path.read_bytes().decode("utf-8")
    return text.removesuffix("\n").split("\n")


def all_lines():
    found = [
        (f"{path.name}:{number}", line)
        for path in sorted(BENIGN.glob("*.txt"))
        for number, line in enumerate(lines_of(path), start=1)
    ]
    assert found, f"no demonstrations found in {BENIGN}"
    return found


def repeated(key):
    places = defaultdict(list)
    for place, line in all_lines():
        places[key(line)].append(place)
    return {text: where for text, where in places.items() if len(where) > 1}


def only_letters(line):
    return "".join(character for character in line if character.isalpha()).casefold()


def test_there_is_one_benign_file_for_each_of_the_thirteen_groups():
    assert len(SLUGS) == 13
    assert {path.name for path in BENIGN.iterdir()} == {f"{slug}.txt" for slug in SLUGS}


def test_every_group_has_at_least_twenty_benign_demonstrations():
    counts = {slug: len(lines_of(BENIGN / f"{slug}.txt")) for slug in SLUGS}
    assert {slug: n for slug, n in counts.items() if n < AT_LEAST} == {}


def test_every_file_ends_with_a_newline():
    assert [path.name for path in sorted(BENIGN.glob("*.txt")) if not path.read_bytes().endswith(b"\n")] == []


def test_no_line_is_empty():
    assert [place for place, line in all_lines() if not line.strip()] == []


def test_no_line_has_whitespace_around_it():
    assert [place for place, line in all_lines() if line != line.strip()] == []


def test_no_line_has_upper_case_letters():
    assert [(place, line) for place, line in all_lines() if any(map(str.isupper, line))] == []


def test_no_line_starts_with_a_hyphen():
    hyphens = ("-", "\u2010", "\u2011", "\u2012", "\u2013", "\u2014", "\u2212")
    assert [(place, line) for place, line in all_lines() if line.lstrip().startswith(hyphens)] == []


def test_every_line_is_between_20_and_160_characters_long():
    assert [(place, len(line)) for place, line in all_lines() if not SHORTEST <= len(line) <= LONGEST] == []


def test_no_line_appears_twice_across_all_files():
    assert repeated(lambda line: line) == {}


def test_no_line_appears_twice_when_only_its_letters_are_compared():
    assert repeated(only_letters) == {}
