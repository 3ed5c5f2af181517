"""Sessions and turns as values: the vocabulary, the rules and the hub. Knows no JSON-RPC, file or vendor."""
