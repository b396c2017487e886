"""`python -m webhook` is `podgate serve`."""

import sys

from webhook.cli.main import main

if __name__ == "__main__":
    sys.argv.insert(1, "serve")
    main()
