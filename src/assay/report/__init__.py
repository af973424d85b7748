"""Rows -> what people read. It sees only rows and the machine in them, so a saved run reads alike."""
