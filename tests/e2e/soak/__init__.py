"""A soak: several people at work for minutes behind podgate, with operators running and policies changing."""
