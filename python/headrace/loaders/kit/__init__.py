"""What adapters are made of: the contract, names, streams, and the loops that they record."""
