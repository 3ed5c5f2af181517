"""The remnants that `laneway uninstall` finds and removes: one module per kind."""
