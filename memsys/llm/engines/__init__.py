"""Engines that serve a backbone: embedded llama.cpp, vLLM (managed or attached), hosted OpenAI-compatible endpoints."""
