"""Figures of the pages: without a background, in a grey that is legible on white and on dark pages."""

GREY = "#767b83"  # a contrast of 4.3:1 to white, and of 4.4:1 to GitHub's dark ground
ON_ANY_GROUND = {
    "text.color": GREY,
    "axes.labelcolor": GREY,
    "axes.edgecolor": GREY,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "savefig.transparent": True,
}
