"""MemGPT (Packer et al., 2023): a main context that is paged out, two storages behind it, and functions on both."""
