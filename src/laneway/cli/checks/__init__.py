"""The checks of `laneway doctor`: one module per kind."""
