"""Attacks on trained models: membership and attribute inference, model inversion, lone clusters."""
