"""`hr.watch`: what is wrong with the tensors of a training, by its losses and gradients."""
