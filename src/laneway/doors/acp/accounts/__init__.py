"""Login and logout of ACP clients."""
