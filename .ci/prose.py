"""Check the language of pages, docstrings and comments, and print how readable each page is.

    python .ci/prose.py                  list sentences with words of `PLAIN`; exit status 1 if there are any
    python .ci/prose.py --readability    print the Flesch reading ease of each page; nothing is enforced

Each entry of `PLAIN` is a pattern that strangers stumbled over, with a plainer form. CONTRIBUTING.md has the rules.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PLAIN = {
    r"\bof one's own\b": "of your own",
    r"\bis (told|heard|asked for)\b": "name who gets what: 'receives', 'prints'",
    r"\bare looked at\b|\bis looked at\b": "is checked, is compared",
    r"\bthe words (of|for|that)\b|\bin words\b": "message, text",
    r"\bwhat it knows\b|\bwhat they know\b": "name the data",
    r"\bgives way\b": "is replaced by",
    r"\bnobody's\b|\bnobody told\b": "name who does what",
    r"\bMade without\b": "By default",
    r"\bthose of one rule\b": "the default rule",
    r"\bis said once\b|\bare said once\b": "one warning says",
    r"\bto the bit\b": "bit for bit",
    r"\bthrows? (a|the) wrist\b": "is too stiff for the wrist",
    r"\bas it comes\b|\bas they come\b": "unchanged",
    r"\bis paid for by\b": "is compensated by",
    r"\bwhose code this is\b": "name the owner",
    r"\bwill do well\b|\bdoes well\b": "say what is achieved, with a number",
    r"\b(simply|obviously|of course|easily)\b": "leave it out",
}
MAX_IN_CODE = 0  # findings in docstrings and comments, as in pages
SENTENCE_END = re.compile(r"[.!?:](?=\s|$)|\n\n|\n[-|#]")


def files(*suffixes: str) -> list[Path]:
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    return [ROOT / name for name in names if name.endswith(suffixes) and name != ".ci/prose.py"]


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """(line, text) of the prose of a file: Markdown without code and formulas, docstrings and comments of Python."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        for pattern in (r"^```.*?^ *```$", r"^\$\$.*?^\$\$$", r"^ {4}.*?$", r"`[^`]+`", r"\$[^$]+\$"):
            source = re.sub(pattern, lambda block: re.sub(r"[^\n]", " ", block[0]), source, flags=re.M | re.S)
        yield 1, source
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (
            text := ast.get_docstring(node, clean=False)
        ):
            yield node.body[0].lineno, text
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def findings() -> Iterator[str]:
    for path in files(".md", ".py"):
        for line, text in prose(path):
            for pattern, plainer in PLAIN.items():
                for match in re.finditer(pattern, text, re.IGNORECASE):
                    number = line + text.count("\n", 0, match.start())
                    yield f"{path.relative_to(ROOT)}:{number}: '{match[0]}': {plainer}"


def reading_ease(text: str) -> float:
    """Flesch's measure: 206.835 - 1.015 words per sentence - 84.6 syllables per word; 60 is plain, 30 hard."""
    terms = re.findall(r"[A-Za-z]{2,}", text)
    sentences = sum(bool(re.search(r"[A-Za-z]{2}", x)) for x in SENTENCE_END.split(text))
    syllables = sum(max(1, len(re.findall(r"[aeiouy]+", re.sub(r"e$", "", word.lower())))) for word in terms)
    return 206.835 - 1.015 * len(terms) / max(sentences, 1) - 84.6 * syllables / max(len(terms), 1)


def print_readability() -> None:
    for path in [*files("README.md", "CONTRIBUTING.md"), *(p for p in files(".md") if "docs" in p.parts)]:
        text = " ".join(part for _, part in prose(path))
        count = len(re.findall(r"[A-Za-z]{2,}", text))
        print(f"{reading_ease(text):6.0f}  {count:5d} words  {path.relative_to(ROOT)}")


def main() -> None:
    if sys.argv[1:] == ["--readability"]:
        print_readability()
        return
    all_findings = list(findings())
    pages = [line for line in all_findings if ".md:" in line]
    code = [line for line in all_findings if ".py:" in line]
    print("\n".join(pages if len(code) <= MAX_IN_CODE else all_findings))
    print(f"{len(pages)} in pages, {len(code)} in docstrings and comments (at most {MAX_IN_CODE})")
    sys.exit(bool(pages) or len(code) > MAX_IN_CODE)


if __name__ == "__main__":
    main()
