"""What `laneway doctor` looks at: one module per kind of check."""
