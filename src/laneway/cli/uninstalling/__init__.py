"""What Laneway has left on this machine, found and removed piece by piece, for `laneway uninstall`."""
