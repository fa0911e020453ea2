"""Learn tree-shaped models (independent, naive Bayes, Chow-Liu, latent trees) by one EM."""
