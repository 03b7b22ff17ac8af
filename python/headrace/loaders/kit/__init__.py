"""Parts of adapters: the contract, names, streams, and the loops that they record."""
