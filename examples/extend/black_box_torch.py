"""A function of torch behind `BlackBox`: tensors in, value and gradient out."""

import numpy as np
import torch

from projfree import BlackBox, SchattenBall, check_gradient, minimize


def problem(seed=0):
    """Logistic regression for several outputs, as a layer of a network would have it."""
    rng = np.random.default_rng(seed)
    X = torch.from_numpy(rng.standard_normal((200, 6)))
    Y = torch.from_numpy((rng.standard_normal((200, 4)) > 0).astype(np.float64))

    def loss(w):
        W = torch.from_numpy(np.ascontiguousarray(w)).requires_grad_()
        value = torch.nn.functional.binary_cross_entropy_with_logits(X @ W, Y)
        value.backward()
        return value.item(), W.grad.numpy()

    return BlackBox(loss, shape=(6, 4), convex=True, name="binary cross entropy of four outputs")


def main():
    """Minimise it over a ball of the nuclear norm, after checking the gradient."""
    f, ball = problem(), SchattenBall(1, radius=1.0)
    assert check_gradient(f, np.full((6, 4), 0.1)).ok
    result = minimize(f, ball, tol=1e-4)
    assert result.status.converged
    return result


if __name__ == "__main__":
    print(main())
