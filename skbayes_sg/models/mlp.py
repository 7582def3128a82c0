"""A feed-forward neural network with softmax output."""

from __future__ import annotations

from collections.abc import Sequence

from skbayes_sg.models.categorical import Categorical
from skbayes_sg.models.feed_forward import FeedForward


class MLP(Categorical, FeedForward):
    """p(y = k | x) = softmax(z)_k, where z are the outputs of a network.

    Ahn et al. 2012, section 5.2, have one logistic hidden layer. With K > 2 classes all K outputs
    are kept, so h + 1 directions of the last layer are determined by the prior alone.

    Parameters
    ----------
    n_features, n_classes : int
    hidden_layer_sizes : sequence of int
        Units of each hidden layer.
    activation : {"logistic", "tanh", "relu"}
    """

    def __init__(
        self,
        n_features: int,
        n_classes: int,
        hidden_layer_sizes: Sequence[int] = (30,),
        activation: str = "logistic",
    ) -> None:
        Categorical.__init__(self, n_classes, 1 if n_classes == 2 else n_classes)
        widths, response = [n_features, *hidden_layer_sizes, self.n_logits], "class"
        FeedForward.__init__(self, widths, activation, response if self.n_logits > 1 else None)
