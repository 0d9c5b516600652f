"""`python -m annulus_semantic_cache`."""

import sys

from annulus_semantic_cache.command import main

sys.exit(main())
