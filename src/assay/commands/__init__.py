"""What the commands do, one file each; cli.py declares them."""
