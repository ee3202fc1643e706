"""What a caller hands over, as (N, K) logits, labels and weights: opened, checked, and named."""
