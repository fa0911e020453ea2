"""Tree-shaped models: independent, naive Bayes, Chow-Liu and latent trees, by one EM."""
