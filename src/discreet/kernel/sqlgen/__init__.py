"""From a Question to the engine's SELECT, written from the kernel's algebra only."""
