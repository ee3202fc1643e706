"""What a caller hands over: opened as (N, K) logits, labels and weights, and checked.

    containers      arrays, tensors and frames -> (N, K) values; results -> the same container
    labels          labels of any kind -> column indices; names of classes
    probabilities   probabilities -> logits; what a probability of 0 means
    validation      checks of arguments, logits and weights

Whatever is invalid raises an `InputError`.
"""
