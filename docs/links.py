"""Follow every link inside the built site: ``python docs/links.py docs/_build/html``.

Ends with exit code 1 if a page, a picture, a file or an anchor is missing, or if a page loads
anything from another host.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"img": "src", "script": "src", "source": "src", "link": "href"}


class Page(HTMLParser):
    """Links and anchors of a page; `loaded` are those that a browser fetches by itself."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.anchors = {"", "top"}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what the tag links to, and its id."""
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.add(found["href"])
        elif LOADED.get(tag) in found and found.get("rel") not in ("canonical", "search"):
            self.loaded.add(found[LOADED[tag]])


def _written(site: Path) -> list[Path]:
    """Pages, without the templates that themes leave among their files."""
    return [path for path in site.rglob("*.html") if "_static" not in path.parts]


def dead(site: Path) -> list[str]:
    """What does not resolve, as "page: link"."""
    pages = {path.resolve(): Page(path.read_text("utf-8")) for path in _written(site)}
    found = []
    for path, page in pages.items():
        for link in sorted(page.links | page.loaded):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                foreign = link in page.loaded and parts.scheme != "data"
                found += [f"{path.name} loads {link}"] if foreign else []
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            lost = target in pages and unquote(parts.fragment) not in pages[target].anchors
            if lost or not target.exists():
                found.append(f"{path.relative_to(site.resolve())}: {link}")
    return sorted(found)


if __name__ == "__main__":
    missing = dead(Path(sys.argv[1]))
    print("\n".join(missing) or "every link resolves")
    sys.exit(bool(missing))
