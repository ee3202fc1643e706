"""The mathematics: arrays in, arrays out. No scikit-learn estimators, no files, no printing.

Read in this order: `blocks` (how N x K numbers are read), `row_block`, `kernels` and `compiled` (one block),
`logit_rows` (all blocks), `predictors` with their links, `objective`, `fisher`.
"""
