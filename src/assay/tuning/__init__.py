"""Which variant is fastest for which input on which card: chosen from rows, kept, looked up."""
