"""The picture of performance profiles: a panel for each column in which targets are paid, and one legend."""

from collections.abc import Sequence

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from mpi_compress.evidence.profile import FACTORS, Profile
from mpi_compress.figures.axes import LONGEST, entry
from mpi_compress.figures.legends import handles_of, put_below
from mpi_compress.figures.style import HEIGHT, MOST, PAGE_WIDTH, looks, style_of
from mpi_compress.results.columns import column_of


def draw(profiles: Sequence[Profile], style: str = "screen") -> Figure:
    """The share of targets that each method reaches within τ times the least, over τ from 1 to 100."""
    names = list(dict.fromkeys(method for profile in profiles for method in profile.methods))
    with mpl.rc_context(style_of(style).settings):
        figure, panels = plt.subplots(1, len(profiles), figsize=(PAGE_WIDTH, HEIGHT), sharey=True, squeeze=False)
        look_of = looks(names, grey=names[MOST:])
        for ax, profile in zip(panels[0], profiles, strict=True):
            for method in (name for name in names if name in profile.ratios):
                ratios = np.sort(profile.ratios[method][profile.ratios[method] <= FACTORS[-1]])
                x = np.concatenate([[FACTORS[0]], ratios, [FACTORS[-1]]])
                share = np.concatenate([np.arange(ratios.size + 1), [ratios.size]]) / profile.targets
                look = {key: value for key, value in look_of[method].items() if key != "marker"}
                ax.step(x, share, where="post", label=entry(method, LONGEST), **look)
            ax.set(xscale="log", xlim=(FACTORS[0], FACTORS[-1]), ylim=(0, 1.02), xlabel="τ, times the least")
            ax.set_title(column_of(profile.by).label)
        panels[0][0].set_ylabel("share of targets")
        figure.set_figheight(HEIGHT + put_below(figure, handles_of(list(panels[0])), None))
    return figure
