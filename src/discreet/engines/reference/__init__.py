"""The reference engine, against which every other engine is tested."""
