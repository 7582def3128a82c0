"""Posteriors whose minibatches only estimate what an expansion around the anchor leaves out."""
