"""ReadAgent (Lee et al., ICML 2024): pages that end where a reader would pause, their gists, pages read again."""
