"""`python -m laneway` is the same program as `laneway`."""

from laneway.cli.main import main

raise SystemExit(main())
