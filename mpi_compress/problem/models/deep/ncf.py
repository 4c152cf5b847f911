import math
from dataclasses import field

import numpy as np

from mpi_compress.core.fields import Decay
from mpi_compress.problem.models.base import Generator, Rows, Shapes, Vector, models
from mpi_compress.problem.models.deep.network import Array, Arrays, AtLeastOne, Dropout, NDArray, Network, fact, jax, jnp


@models.register("ncf")
class NCF(Network):
    """Neural collaborative filtering, NeuMF (He, Liao, Zhang, Nie, Hu, Chua 2017), in JAX, for data of format "movielens".

    The loss is log(1 + e^−s) of an item that the user has rated, and log(1 + e^s) of one that the user has not rated. The score s
    is linear in the product of factors of user and item, and in the output of ReLU layers on other factors of both. As in the
    hard-threshold paper, d = 31,832,577 with the defaults on MovieLens-20M.
    """

    labels = "number"
    factors: AtLeastOne = 64  # of each user and each item that are multiplied
    layers: list[int] = field(default_factory=lambda: [256, 256, 128, 64], hash=False)  # widths, the first of both factors together
    dropout: Decay = 0.5  # after each layer

    @fact
    def random(self) -> bool:
        return self.dropout > 0

    def check(self) -> None:
        if not {"users", "items"} <= set(self.outline.sizes):
            raise ValueError(f'{self.name} needs ratings: data = {{ path = …, format = "movielens" }}')
        if not self.layers or min(self.layers) < 1 or self.layers[0] % 2:
            raise ValueError(f"layers = {self.layers} must be at least 1, and the first layer even")

    @property
    def blocks(self) -> Shapes:
        users, items, half = self.outline.sizes["users"], self.outline.sizes["items"], self.layers[0] // 2
        found: dict[str, tuple[int, ...]] = {
            "users": (users, self.factors),
            "items": (items, self.factors),
            "deep users": (users, half),
            "deep items": (items, half),
        }
        for i, (before, after) in enumerate(zip(self.layers, self.layers[1:], strict=False), start=1):
            found |= {f"W{i}": (before, after), f"b{i}": (after,)}
        return found | {"w": (self.factors + self.layers[-1], 1), "c": (1,)}

    def start_of_block(self, name: str, shape: tuple[int, ...], rng: Generator) -> Vector:
        """Factors N(0, 0.01²); weights uniform by Glorot and Bengio (2010), those of s by LeCun et al. (1998)."""
        if "users" in name or "items" in name:
            return 0.01 * rng.standard_normal(shape)
        if len(shape) == 1:
            return np.zeros(shape)
        largest = math.sqrt(3 / shape[0] if name == "w" else 6 / sum(shape))
        return rng.uniform(-largest, largest, shape)

    def inputs(self, rows: Rows) -> NDArray[np.int64]:
        users = self.outline.sizes["users"]
        return rows.pairs(self.name)[0] - np.array([0, users])

    def outputs(self, p: Arrays, a: Array, real: Array, drop: Dropout) -> Array:
        user, item = a[:, 0], a[:, 1]
        h = jnp.concatenate([p["deep users"][user], p["deep items"][item]], axis=1)
        for i in range(1, len(self.layers)):
            h = drop(jax.nn.relu(h @ p[f"W{i}"] + p[f"b{i}"]), self.dropout)
        both = jnp.concatenate([p["users"][user] * p["items"][item], h], axis=1)
        return (both @ p["w"])[:, 0] + p["c"][0]

    def losses(self, outputs: Array, a: Array, y: Array) -> Array:
        return jax.nn.softplus(outputs) - y * outputs
