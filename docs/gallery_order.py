"""The gallery's sections, its thumbnails and the texts that stand for its pictures."""

import re
import shutil
from pathlib import Path
from textwrap import indent
from typing import Any

from matplotlib import pyplot as plt
from matplotlib.transforms import Bbox
from sphinx_gallery.scrapers import matplotlib_scraper

SECTIONS = {
    "results": ["effects", "coefficients", "intervals", "checks", "model_choice"],
    "answers": [
        "exposure",
        "shares",
        "more_zeros",
        "answers",
        "outliers",
        "odds_ratios",
        "new_levels",
    ],
    "jobs": [
        "mixed_columns",
        "case_counts",
        "ticks",
        "ratings",
        "severity",
        "own_family",
        "genes",
        "three_species",
    ],
    "decisions": ["abstention", "active_learning", "transfer"],
    "networks": ["horseshoe", "uncertainty", "unseen_digits", "drbm"],
    "many_rows": ["on_disk", "dask", "stream", "callbacks", "mixing"],
}
ORDER = [name for names in SECTIONS.values() for name in names]

# A whole figure cannot be read at the size of a thumbnail: which of the axes of the first figure is
# shown, or None for the figure, and what part of it, as left, low, right and high.
DETAIL = {
    "effects": (0, (0.0, 0.0, 1.0, 1.0)),
    "coefficients": (0, (0.25, 0.72, 0.95, 1.0)),
    "intervals": (0, (0.0, 0.0, 1.0, 1.0)),
    "checks": (0, (0.0, 0.0, 1.0, 1.0)),
    "model_choice": (0, (0.43, 0.0, 1.0, 0.78)),
    "exposure": (1, (0.25, 0.0, 1.0, 0.7)),
    "shares": (1, (0.1, 0.0, 1.0, 0.72)),
    "more_zeros": (0, (0.0, 0.0, 0.6, 1.0)),
    "answers": (0, (0.0, 0.0, 1.0, 0.78)),
    "outliers": (0, (0.15, 0.33, 0.8, 0.87)),
    "odds_ratios": (0, (0.1, 0.0, 1.0, 0.3)),
    "new_levels": (0, (0.0, 0.1, 0.7, 0.85)),
    "abstention": (0, (0.5, 0.0, 1.0, 0.5)),
    "active_learning": (0, (0.0, 0.0, 0.7, 1.0)),
    "transfer": (0, (0.0, 0.0, 0.6, 0.7)),
    "horseshoe": (0, (0.0, 0.1, 0.42, 1.0)),
    "uncertainty": (0, (0.0, 0.1, 1.0, 1.0)),
    "unseen_digits": (1, (0.0, 0.05, 1.0, 1.0)),
    "drbm": (None, (0.115, 0.0, 0.32, 0.5)),
    "on_disk": (0, (0.3, 0.0, 0.8, 1.0)),
    "dask": (0, (0.02, 0.4, 0.42, 0.85)),
    "stream": (0, (0.3, 0.3, 1.0, 1.0)),
    "callbacks": (0, (0.0, 0.0, 0.6, 0.7)),
    "mixing": (4, (0.0, 0.0, 1.0, 1.0)),
}
SIZE = 320, 224  # pixels of a thumbnail, which is shown at half of that


class ByTopic:
    """Sort key of sphinx-gallery; what is not named comes last."""

    def __init__(self, folder: str) -> None:
        pass

    def __call__(self, file: str) -> tuple[int, str]:
        """Place of an example."""
        name = file.removeprefix("plot_").removesuffix(".py")
        return (ORDER.index(name) if name in ORDER else len(ORDER)), name


def pictures(block: tuple, block_vars: dict, gallery_conf: dict, **options: Any) -> str:
    """Pictures of a cell, as sphinx-gallery has them, whose alternative texts name the axes."""
    figures = [plt.figure(number) for number in plt.get_fignums()]
    texts = iter([_described(figure) for figure in figures])
    source = Path(block_vars["src_file"])
    name = source.stem.removeprefix("plot_")
    folder = Path(gallery_conf["src_dir"], "gallery", source.parent.name, "images", "detail")
    if figures and name in DETAIL and not (folder / f"{name}.png").exists():
        folder.mkdir(parents=True, exist_ok=True)
        _save_detail(figures[0], *DETAIL[name], folder / f"{name}.png")
    rst = matplotlib_scraper(block, block_vars, gallery_conf, **options)
    rst = re.sub(r"(?<=:alt: ).*", lambda match: next(texts) or match[0], rst)
    # on narrow screens a picture scrolls within this block, which site.css says
    return f".. container:: scrolling\n\n{indent(rst, '    ')}" if figures else rst


def thumbnails(gallery: Path) -> None:
    """Put the details in the place of the thumbnails that sphinx-gallery has made."""
    for detail in gallery.glob("*/images/detail/*.png"):
        name = f"sphx_glr_plot_{detail.stem}_thumb.png"
        shutil.copyfile(detail, detail.parents[1] / "thumb" / name)


def _save_detail(figure: Any, number: int | None, part: tuple, file: Path) -> None:
    """A part of the inside of some axes, in the shape of a thumbnail; lines grow with it."""
    figure.canvas.draw()
    box = (figure if number is None else figure.axes[number]).get_window_extent()
    left, low, right, high = part
    x, width = box.x0 + left * box.width, (right - left) * box.width
    y, height = box.y0 + low * box.height, (high - low) * box.height
    wanted = SIZE[0] / SIZE[1]
    if width / height > wanted:  # cut what is too wide or too high, at both ends
        x, width = x + (width - wanted * height) / 2, wanted * height
    else:
        y, height = y + (height - width / wanted) / 2, width / wanted
    inches = Bbox.from_bounds(x, y, width, height).transformed(figure.dpi_scale_trans.inverted())
    figure.savefig(file, bbox_inches=inches, pad_inches=0, dpi=SIZE[0] / inches.width)


def _described(figure: Any) -> str:
    """Titles and labels of the panels, each once."""
    panels = []
    for ax in figure.axes:
        title = " ".join(filter(None, map(ax.get_title, ("left", "center", "right"))))
        labels = " against ".join(filter(None, (ax.get_ylabel(), ax.get_xlabel())))
        panels.append(": ".join(filter(None, (title, labels))))
    return " ".join("; ".join(dict.fromkeys(filter(None, panels))).split())
