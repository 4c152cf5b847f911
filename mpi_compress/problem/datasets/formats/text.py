"""Formats of text: LIBSVM's, and plain text for language models."""

import re
from collections import Counter
from pathlib import Path
from typing import Annotated

import numpy as np

from mpi_compress.core.fields import AtLeastOne, within
from mpi_compress.problem.datasets import libsvm
from mpi_compress.problem.datasets.formats.base import Format, Reading, UserError, blocks_of, content, formats

_WORD = re.compile(r"<unk>|[^\W_]+(?:['’][^\W_]+)*|[^\w\s]")


@formats.register("libsvm")
class LibsvmText(Format):
    """LIBSVM text: a line a sample, `label index:value …`."""

    def read(self, path: Path, dim: int | None, part: int, parts: int) -> Reading:
        return Reading(libsvm.read_blocks(path, dim, part, parts))


@formats.register("text")
class Text(Format):
    """Plain text in UTF-8 for word-level language models: a row is `window` + 1 successive words; its last one begins the next row.

    Words are in lower case, and a punctuation mark is a word. Word 1, 2, … is the first, second, … most frequent word of the
    training text, of equally frequent ones the alphabetically first; word 0 is every word that is not among them. The label of a
    row is its last word. Words after the last whole row are left out.
    """

    in_shares = False
    vocabulary: Annotated[int, within("[2, inf)")] = 10000  # V, how many different words there are, word 0 included
    window: AtLeastOne = 30  # T, words that are predicted in a sample
    held_out: Annotated[float, within("[0, 1)")] = 0.0  # share of the words, at the end of the text, that test = "held-out" names

    def read(self, path: Path, dim: int | None, part: int, parts: int) -> Reading:
        training = self._parts(path)[0]
        return self._reading(path, training, self._numbers(training))

    def read_test(self, path: Path, test: Path | None, dim: int) -> Reading:
        training, rest = self._parts(path)
        if test is None and not self.held_out:
            raise UserError('data.test: "held-out": no words are held out; held_out = 0.1 would hold out the last tenth')
        return self._reading(test or path, rest if test is None else _words(test), self._numbers(training))

    def _parts(self, path: Path) -> tuple[list[str], list[str]]:
        words = _words(path)
        end = len(words) - int(self.held_out * len(words))
        return words[:end], words[end:]

    def _numbers(self, words: list[str]) -> dict[str, int]:
        counts = Counter(words)
        counts.pop("<unk>", None)
        most = sorted(counts, key=lambda word: (-counts[word], word))[: self.vocabulary - 1]
        return {word: i for i, word in enumerate(most, start=1)}

    def _reading(self, path: Path, words: list[str], numbers: dict[str, int]) -> Reading:
        if len(words) <= self.window:
            raise UserError(f"{path}: has {len(words)} words, and a sample takes {self.window + 1}; a smaller window would do")
        ids = np.array([numbers.get(word, 0) for word in words], dtype=float)
        sizes = {"vocabulary": len(numbers) + 1, "window": self.window}
        rows = np.lib.stride_tricks.sliding_window_view(ids, self.window + 1)[:: self.window]
        return Reading(blocks_of(rows, rows[:, -1]), sizes, self.window + 1)


def _words(path: Path) -> list[str]:
    data = content(path)
    try:
        return _WORD.findall(data.decode("utf-8-sig").lower())
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise UserError(f"{path}:{line}: byte {error.start + 1} of the file is no UTF-8 text") from None
