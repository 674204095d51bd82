"""MemoryBank (Zhong et al., AAAI 2024): pieces of talk, summaries of days, a portrait, and a forgetting curve."""
