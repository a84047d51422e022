"""The page: see a memory, mend it, and see why a fact was found. `holomem web` serves it on loopback."""
