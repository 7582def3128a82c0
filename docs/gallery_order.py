"""The order of the gallery: what a posterior is, what it is good for, data, then what is inside."""

ORDER = [
    "probabilities",
    "odds_ratios",
    "coefficients",
    "uncertainty",
    "reliability",
    "intervals",
    "unseen_digits",
    "abstention",
    "active_learning",
    "transfer",
    "learned_prior",
    "model_choice",
    "stream",
    "on_disk",
    "dask",
    "callbacks",
    "mixing",
    "covariance",
]


class ByTopic:
    """Sort key of sphinx-gallery; what is not named comes last."""

    def __init__(self, folder: str) -> None:
        pass

    def __call__(self, file: str) -> tuple[int, str]:
        """Place of an example."""
        name = file.removeprefix("plot_").removesuffix(".py")
        return (ORDER.index(name) if name in ORDER else len(ORDER)), name
