"""Writes extra_trees.csv: rows to learn from, rows to predict, and what scikit-learn's ExtraTreesRegressor makes of them.

    python3 extra_trees.py > extra_trees.csv

Many trees, so that what is left of the draws is small: tree_ensemble_test.cc compares means and spreads.
"""

import numpy
from sklearn.ensemble import ExtraTreesRegressor

LEARNED, PREDICTED, TREES = 90, 30, 4000

random = numpy.random.default_rng(15)
columns = [
    random.choice([4, 5, 6, 7], LEARNED + PREDICTED).astype(float),
    random.choice([0, 1], LEARNED + PREDICTED).astype(float),
    random.choice([0, 1, 2, 3, 4, 5], LEARNED + PREDICTED).astype(float),
    random.uniform(0, 8, LEARNED + PREDICTED).round(3),
    random.normal(0, 1, LEARNED + PREDICTED).round(3),  # tells nothing
]
rows = numpy.stack(columns, axis=1)
waves = numpy.ceil(rows[:, 3]) / numpy.maximum(rows[:, 3], 0.5)
targets = (0.3 * rows[:, 0] - rows[:, 1] * (rows[:, 2] > 2) + 0.5 * numpy.log(waves)).round(6)
weights = random.choice([1.0, 1.0, 0.25, 3.0], LEARNED + PREDICTED)

model = ExtraTreesRegressor(n_estimators=TREES, min_samples_leaf=2, max_features=1.0, random_state=1)
model.fit(rows[:LEARNED], targets[:LEARNED], sample_weight=weights[:LEARNED])
trees = numpy.stack([tree.predict(rows[LEARNED:]) for tree in model.estimators_])

print("# learned: weight, target, features; predicted: mean, standard deviation over the trees, features")
for row, target, weight in zip(rows[:LEARNED], targets, weights):
    print("learned", weight, target, *row, sep=",")
for row, mean, deviation in zip(rows[LEARNED:], trees.mean(axis=0), trees.std(axis=0)):
    print("predicted", round(mean, 6), round(deviation, 6), *row, sep=",")
