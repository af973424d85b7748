"""Rows -> what people read. It sees rows and their machine alone: a saved run reads alike."""
