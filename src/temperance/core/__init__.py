"""The mathematics: arrays in, arrays out. No scikit-learn estimators, no files, no printing.

Read in this order: `blocks` (how N x K numbers are read), `kernels` and `compiled` (one block),
`logit_rows` (all blocks), `links`, `predictors`, `objective`, `fisher`.
"""
