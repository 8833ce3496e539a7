"""What makes files that the project keeps, from sources that it does not need at run time."""
