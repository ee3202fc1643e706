"""A scikit-learn pipeline with calibrated probabilities: scaling, a classifier, and a choice of calibrator.

The data are handwritten digits, a third of them held out as a test set.
"""

from sklearn.datasets import load_digits
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from temperance import CalibratedClassifier, make_calibrator

images, digits = load_digits(return_X_y=True)
train, test, train_labels, test_labels = train_test_split(
    images, digits, test_size=1 / 3, random_state=0, stratify=digits
)

# Naive Bayes assumes independent pixels, and so is very overconfident.
plain = make_pipeline(StandardScaler(), GaussianNB(var_smoothing=1e-2)).fit(train, train_labels)
before = log_loss(test_labels, plain.predict_proba(test))
print(f"naive Bayes: log loss {before:.3f}, accuracy {accuracy_score(test_labels, plain.predict(test)):.3f}")

# The calibrator is fitted to scores of rows that the classifier was not trained on: five folds, all inside.
model = make_pipeline(StandardScaler(), CalibratedClassifier(GaussianNB(var_smoothing=1e-2)))
model.fit(train, train_labels)
after = log_loss(test_labels, model.predict_proba(test))
print(f"calibrated:  log loss {after:.3f}, accuracy {accuracy_score(test_labels, model.predict(test)):.3f}\n")
print(model[-1].calibrator_.summary())

# The calibrator is an ordinary parameter: a key, or an object with its own options.
grid = {
    "calibratedclassifier__calibrator": ["ts", "bayes", make_calibrator("bts", bins=5)],
    "calibratedclassifier__estimator__var_smoothing": [1e-2, 1e-1],
}
search = GridSearchCV(model, grid, scoring="neg_log_loss", cv=2).fit(train, train_labels)
best = {name.removeprefix("calibratedclassifier__"): value for name, value in search.best_params_.items()}
chosen = log_loss(test_labels, search.predict_proba(test))
print(f"\nbest of {len(search.cv_results_['params'])}: {best}\nlog loss {chosen:.3f}")
