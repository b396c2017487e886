"""decide: one object in, allowed with a patch or denied with every violation out."""
