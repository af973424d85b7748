"""A variant as code of its own: a standalone CUDA program, or an extension to install."""
