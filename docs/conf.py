"""The site: `make docs` builds it, without network, into docs/_build/html.

The pages are read on GitHub too. So links lead to files of the repository, and `on_the_site` turns
those into pages of the site.
"""

import re
import sys
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

import skbayes_sg

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs"))

import gallery_order  # noqa: E402, in the folder above

project = "skbayes_sg"
author = "The authors of skbayes_sg"
project_copyright = "2026, " + author
version = release = skbayes_sg.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # MathJax and its fonts out of a wheel
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "sphinx_copybutton",
]
exclude_patterns = ["_build"]
templates_path = ["_templates"]
default_role = "literal"  # docstrings write `names` as Markdown does
nitpicky = True
nitpick_ignore_regex = [("py:obj", r"\w+_")]  # fitted attributes that are properties

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc has the types, with their shapes
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False  # the template lists them
numpydoc_class_members_toctree = False

myst_enable_extensions = ["dollarmath"]
myst_fence_as_directive = ["math"]
myst_heading_anchors = 4
suppress_warnings = ["myst.header"]  # errata are headings of the fourth level, below the second

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "subsection_order": [f"../examples/{name}" for name in gallery_order.SECTIONS],
    "within_subsection_order": "gallery_order.ByTopic",
    "thumbnail_size": gallery_order.SIZE,
    "doc_module": "skbayes_sg",  # pages of the reference say which examples use a class
    "backreferences_dir": "api/generated/examples",
    "reference_url": {"skbayes_sg": None},
    "image_scrapers": ("gallery_order.pictures",),
    "ignore_pattern": r"plot_demo",  # the demo is a program, `make demo`
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 3600,  # times of a busy machine say little
    "capture_repr": (),
}

html_theme = "pydata_sphinx_theme"
html_title = f"skbayes_sg {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_search_scorer = str(ROOT / "docs" / "search_scorer.js")
html_show_sourcelink = False
html_sidebars = {page: [] for page in ("index", "quickstart", "extending", "repository/*")}
html_theme_options = {
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": {"**": ["page-toc", "sg_download_links"], "index": []},
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "show_prev_next": False,
    "footer_end": [],
}

PAGES = {path.name: path.stem.lower() for path in ROOT.glob("[A-Z]*.md")}  # all but paper.md
LINK = re.compile(r"\]\(\.\./([\w./-]+)")


def on_the_site(app: Sphinx, docname: str, source: list[str]) -> None:
    """Links to files of the repository become links to the pages that show them, if there are any.

    Pages of `repository/` are the files of the repository's root.
    """
    folder, _, name = docname.rpartition("/")
    up = "../" if folder else ""
    if folder == "repository":
        source[0] = (ROOT / f"{name.upper()}.md").read_text(encoding="utf-8")
        source[0] = re.sub(r"\]\(docs/", "](../", source[0])
        source[0] = re.sub(r"\]\((?=\w+\.md)", "](../", source[0])
        source[0] = re.sub(r"\]\((?!https?:|#|\.\./)", "](../../", source[0])  # a file to download
        up = ""

    def page(match: re.Match) -> str:
        path = match[1]
        if path in PAGES:
            return f"]({up}{'' if folder == 'repository' else 'repository/'}{PAGES[path]}.md"
        if path == "examples/README.rst":
            return f"]({up}gallery/index.rst"
        if re.fullmatch(r"examples/\w+/plot_\w+\.py", path):
            return f"]({up}gallery/{path.removeprefix('examples/').removesuffix('.py')}.rst"
        return match[0]

    source[0] = LINK.sub(page, source[0])


def cited(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list) -> None:
    """`math/page.md#heading` in a docstring becomes a link; `linked` says where to."""
    for i, line in enumerate(lines):
        lines[i] = re.sub(
            r"(?<![\w/])(?:docs/)?((?:math/)?\w+)\.md#([\w-]+)", r"`\g<0> <docs:\1#\2>`__", line
        )


def linked(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """What docstrings cite has the address from this page, and the heading's words as its text."""
    for link in doctree.findall(nodes.reference):
        scheme, _, target = link.get("refuri", "").partition("docs:")
        if not scheme and target:
            page, _, slug = target.partition("#")
            link["refuri"] = f"{app.builder.get_relative_uri(docname, page)}#{slug}"
            sections = app.env.get_doctree(page).findall(nodes.section)
            titles = [each.next_node(nodes.title) for each in sections if each.get("slug") == slug]
            link.children = [nodes.Text(title.astext()) for title in titles] or link.children


def broken(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    """Long paths in code may be broken after their parts, where site.css lets them."""
    context["body"] = re.sub(
        r'(?<=<span class="pre">)[^<]{30,}(?=</span>)',
        lambda match: re.sub(r"(?<=[./_:])(?=\w)", "<wbr>", match[0]),
        context.get("body", ""),
    )


def detailed(app: Sphinx) -> None:
    """Thumbnails of the gallery are details of its pictures."""
    gallery_order.thumbnails(Path(app.srcdir, "gallery"))


def setup(app: Sphinx) -> None:
    """Connect the above."""
    app.connect("source-read", on_the_site)
    app.connect("builder-inited", detailed, priority=900)  # after sphinx-gallery
    app.connect("autodoc-process-docstring", cited)
    app.connect("doctree-resolved", linked)
    app.connect("html-page-context", broken)
