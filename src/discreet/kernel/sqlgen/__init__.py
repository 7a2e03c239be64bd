"""From a Question to the engine's SELECTs, written from the kernel's algebra only."""
