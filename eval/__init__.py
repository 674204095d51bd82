"""The harness: loaders, runner, reader, scoring, statistics, tables. Import with ``from eval import ...`` only."""
